"""The pages of a report: their data, the one file that holds them all, and the server that shows them."""
