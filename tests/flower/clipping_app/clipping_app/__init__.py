"""A federation whose every reply is determined by the node's place, the round and the model."""
