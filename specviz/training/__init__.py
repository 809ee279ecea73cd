"""Distilling a small drafter from a target."""
