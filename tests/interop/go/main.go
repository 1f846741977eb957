// Kafka clients written in Go, as tests use them: `clients read CLIENT` reads partitions,
// `clients member CLIENT ADDRESS GROUP TOPIC...` is a member of a consumer group.
//
// A reader takes a line of JSON for each partition. It prints a line for each record, and at
// the end of a partition one line that says how it ended.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// How long nothing arrives before a partition counts as read.
const quiet = 1500 * time.Millisecond

type wanted struct {
	Address   string `json:"address"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Committed bool   `json:"committed"`
}

type header [2]any

type line map[string]any

var out = json.NewEncoder(os.Stdout)

func say(what line) {
	if err := out.Encode(what); err != nil {
		os.Exit(1)
	}
}

func milliseconds(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return at.UnixMilli()
}

var readers = map[string]func(wanted) error{"franz-go": readFranz, "sarama": readSarama}

var members = map[string]func(string, string, []string){
	"franz-go": joinFranz, "sarama": joinSarama,
}

func main() {
	if len(os.Args) > 4 && os.Args[1] == "member" {
		members[os.Args[2]](os.Args[3], os.Args[4], os.Args[5:])
		return
	}
	out.SetEscapeHTML(false)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var where wanted
		if err := json.Unmarshal(lines.Bytes(), &where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		failure := ""
		if err := readers[os.Args[2]](where); err != nil {
			failure = err.Error()
		}
		say(line{"error": failure})
	}
}
