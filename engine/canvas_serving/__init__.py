"""What serves families that denoise whole canvases: requests laid out, the core behind them, how one is loaded."""
