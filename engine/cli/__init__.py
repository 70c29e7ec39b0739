"""The command line: the one place that may reach into both the engine and the language server, lazily."""
