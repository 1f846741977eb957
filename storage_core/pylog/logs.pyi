# Made by make import-graph from the list in pylog.logs.

from pylog.lazy_modules import LazyNames
from pylog.cleaner.log_cleaner import LogCleaner as LogCleaner
from pylog.config.broker_config import CleanerConfig as CleanerConfig
from pylog.config.broker_config import LogManagerConfig as LogManagerConfig
from pylog.log.log_context import LogContext as LogContext
from pylog.log.log_manager import LogManager as LogManager
from pylog.log.log_segment import FetchDataInfo as FetchDataInfo
from pylog.log.log_segment import FetchIsolation as FetchIsolation
from pylog.log.metrics import CleanerMetrics as CleanerMetrics
from pylog.log.metrics import LogManagerMetrics as LogManagerMetrics
from pylog.log.metrics import LogMetrics as LogMetrics
from pylog.log.unified_log import UnifiedLog as UnifiedLog
from pylog.model import AbortedTransaction as AbortedTransaction
from pylog.model import AppendOrigin as AppendOrigin
from pylog.model import NO_PARTITION_LEADER_EPOCH as NO_PARTITION_LEADER_EPOCH
from pylog.model import NO_PRODUCER_EPOCH as NO_PRODUCER_EPOCH
from pylog.model import NO_PRODUCER_ID as NO_PRODUCER_ID
from pylog.model import NO_SEQUENCE as NO_SEQUENCE
from pylog.model import NO_TIMESTAMP as NO_TIMESTAMP
from pylog.record.legacy_builder import LegacyBatchBuilder as LegacyBatchBuilder
from pylog.record.record import Record as Record
from pylog.record.record import RecordHeader as RecordHeader
from pylog.record.record_batch_builder import RecordBatchBuilder as RecordBatchBuilder
from pylog.validation.log_append_info import AppendedBatches as AppendedBatches
from pylog.validation.log_append_info import LogAppendInfo as LogAppendInfo
from pylog.writing.owned_directory import own_log_directory as own_log_directory

__all__: list[str]
_PUBLIC: LazyNames
