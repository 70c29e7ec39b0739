"""Engines that are not on this machine's socket: a team's Lacuna engine, or a server that speaks OpenAI's API."""
