"""The style sheet of the page: light and dark as the reader's system is, narrow and wide."""

PAGE_STYLE = """
:root{--page:#f6f7f9;--card:#fff;--ink:#171a21;--muted:#5d6675;--line:#e1e5eb;--track:#eef1f5;
--a:#2f6fde;--b:#9dbdf3;--bound:#171a21;--good:#16855b;--warn:#9a5b00;--warnback:#fff5e0;
--none:#98a2b3;--gzip:#d98e04;--snappy:#1f9d6b;--lz4:#2f6fde;--zstd:#8250df;--other:#d1483f}
@media(prefers-color-scheme:dark){:root{--page:#0f1217;--card:#181c23;--ink:#e8ebf0;
--muted:#9aa4b2;--line:#2a303a;--track:#232933;--a:#5b93f5;--b:#34558f;--bound:#f2f4f8;
--good:#4cc38a;--warn:#f1b24a;--warnback:#2c2416;--none:#7d8796;--gzip:#e3a32d;--snappy:#3fbf8a;
--lz4:#5b93f5;--zstd:#a784f0;--other:#e5675e}}
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1180px;margin:0 auto;padding:40px 24px 64px}
header{margin-bottom:28px}
h1{font-size:30px;line-height:1.2;letter-spacing:-.02em;margin:0 0 6px;font-weight:680}
h2{font-size:21px;letter-spacing:-.01em;margin:44px 0 4px;font-weight:660;overflow-wrap:anywhere}
h3{font-size:15px;margin:0 0 2px;font-weight:640}
p{margin:0}.lead,.note{color:var(--muted)}
.lead{overflow-wrap:anywhere}.note{font-size:13px;margin-bottom:12px}
h2+.lead{margin-bottom:16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:22px 0 20px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:14px 16px}
.tile b{display:block;font-size:24px;line-height:1.25;letter-spacing:-.02em;font-weight:660}
.tile span{color:var(--muted);font-size:13px}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;
min-width:0}
.wide{grid-column:1/-1}
.bars{display:grid;grid-template-columns:fit-content(42%) minmax(60px,1fr) auto;
gap:7px 12px;align-items:center;margin-top:10px}
.row{display:contents}
.label{overflow-wrap:anywhere;font-size:13.5px;line-height:1.3}
.value{text-align:right;font-size:13.5px;white-space:nowrap}
.value small{color:var(--muted);font-size:12.5px}
.bars svg,.share{width:100%;height:14px;display:block;border-radius:3px;overflow:hidden}
.share{height:18px;margin:10px 0 12px}
.columns{position:relative;margin-top:22px}
.columns svg{width:100%;height:150px;display:block}
.columns .top{position:absolute;right:0;top:-19px;font-size:12px;color:var(--muted)}
.axis{display:flex;justify-content:space-between;gap:8px;font-size:12px;color:var(--muted);
margin-top:5px}
.axis span{flex:1 1 0;text-align:center;white-space:nowrap}
.axis.starts span,.axis span:first-child:not(:only-child){text-align:left}
.axis:not(.starts) span:last-child:not(:only-child){text-align:right}
.track{fill:var(--track)}.a{fill:var(--a)}.b{fill:var(--b)}.bound{fill:var(--bound);opacity:.75}
.saved{fill:var(--good)}.now{fill:var(--none)}.live{fill:var(--good)}.dead{fill:var(--none)}
.none{fill:var(--none)}.gzip{fill:var(--gzip)}.snappy{fill:var(--snappy)}.lz4{fill:var(--lz4)}
.zstd{fill:var(--zstd)}.other{fill:var(--other)}
.hit{fill:transparent}g:hover .hit{fill:var(--track)}
line.grid{stroke:var(--line);stroke-width:1;vector-effect:non-scaling-stroke}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:0;padding:0;
font-size:13.5px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:7px}
.legend small{color:var(--muted);margin-left:5px;font-size:12.5px}
.scroll{overflow-x:auto;margin-top:10px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{font-weight:550;color:var(--muted);font-size:12.5px;white-space:nowrap}
th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child td{border-bottom:0}
.t{text-align:left}td.t{overflow-wrap:anywhere;min-width:90px}
.n{text-align:right;white-space:nowrap}
code{font:12.5px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.problems{background:var(--warnback);border:1px solid var(--warn);border-radius:12px;
padding:14px 18px;margin-bottom:20px;font-size:13.5px}
.problems b{color:var(--warn)}.problems ul{margin:6px 0 0;padding-left:18px}
.problems li{overflow-wrap:anywhere}
.value small.good{color:var(--good);font-weight:600}
details{margin-top:12px}summary{cursor:pointer;color:var(--muted);font-size:13.5px}
footer{margin-top:48px;color:var(--muted);font-size:13px}
@media(max-width:760px){main{padding:24px 14px 40px}h1{font-size:24px}
.grid{grid-template-columns:minmax(0,1fr)}.card{padding:15px 14px}
.tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:10px}.tile b{font-size:20px}
.bars{gap:7px 9px}}
@media print{body{background:none}.card,.tile{break-inside:avoid}}
"""
