"""Gradients of many clients at once: one pass over everybody's samples where the model allows it, else one by one."""

from fedra.simulation.gradients.cohort_gradients import CHUNK, CohortGradients, CohortSamples, choose_memory_format

__all__ = ["CHUNK", "CohortGradients", "CohortSamples", "choose_memory_format"]
