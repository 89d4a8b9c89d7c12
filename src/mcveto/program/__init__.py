"""What is verified: the image, the spec file, the entry state, inputs and halts."""
