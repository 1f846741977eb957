"""Configuration under Kafka's property names, with Kafka's defaults and bounds."""

from pylog.config.cleaner_config import CleanerConfig
from pylog.config.log_config import LogConfig
from pylog.config.log_manager_config import LogManagerConfig, RecoveryMode

__all__ = ["CleanerConfig", "LogConfig", "LogManagerConfig", "RecoveryMode"]
