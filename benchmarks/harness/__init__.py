"""Runs the contestants: checks their results, times them in turns, shows and keeps the figures."""
