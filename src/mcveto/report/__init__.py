"""What people and programs read: text, JSON, and later SARIF, witnesses and HTML."""
