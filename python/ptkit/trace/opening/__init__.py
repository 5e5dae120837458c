"""Opening: files and bytes of users as a trace, and the files beside it."""
