"""Configuration under Kafka's property names, with Kafka's defaults and bounds."""

from pylog.config.broker_config import CleanerConfig, LogManagerConfig, RecoveryMode
from pylog.config.log_config import LogConfig

__all__ = ["CleanerConfig", "LogConfig", "LogManagerConfig", "RecoveryMode"]
