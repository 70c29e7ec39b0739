"""What a model did, step by step, recorded and shown: `recording` the record, `watching` how it is made, `page` how it
becomes one HTML file."""
