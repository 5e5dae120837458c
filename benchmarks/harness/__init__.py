"""What runs the contestants: checks them, times them in turns, shows and keeps the figures."""
