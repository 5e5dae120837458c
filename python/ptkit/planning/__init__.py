"""Planning a recording: how much trace a program gives, and which options lose none of it."""

from __future__ import annotations

from ptkit.planning.estimates import Estimate
from ptkit.planning.recording_plan import RecordingPlan, StreamRate, plan_recording

__all__ = ["Estimate", "RecordingPlan", "StreamRate", "plan_recording"]
