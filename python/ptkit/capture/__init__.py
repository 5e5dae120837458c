"""Recording: the back ends that this machine has, what others need, and recorders."""

from ptkit.capture.backends import Backend, probe
from ptkit.capture.filters import Filter
from ptkit.capture.options import Options
from ptkit.capture.recorder import Recorder, record
from ptkit.capture.recording import Progress, Recording
from ptkit.capture.triggers import Trigger

__all__ = ["Backend", "Filter", "Options", "Progress", "Recorder", "Recording", "Trigger", "probe", "record"]
