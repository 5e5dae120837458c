"""What all packages take from: checks of arguments and of memory, columns, text, files, the system."""
