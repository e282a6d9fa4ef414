"""Digits learned by a federation in which some nodes lie."""
