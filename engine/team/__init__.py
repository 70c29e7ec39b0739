"""The engine for a team: the same core behind HTTP, replicated by Ray Serve. Extra `[team]`."""
