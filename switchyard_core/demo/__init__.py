"""What ``switchyard demo`` plays: a policy, a script for its models, and a story to send."""

from switchyard_core.demo.performance import Performance, Scene
from switchyard_core.demo.story import Expectation, Step, StoryBook, load_story

__all__ = ["Expectation", "Performance", "Scene", "Step", "StoryBook", "load_story"]
