"""What an answer is worth: other means that repeat a counterexample or re-prove a proof."""
