"""Annotated code: instructions and source lines of functions, with counts."""

from ptkit.view.annotated.annotation import Annotation
from ptkit.view.annotated.function import AnnotatedFunction

__all__ = ["AnnotatedFunction", "Annotation"]
