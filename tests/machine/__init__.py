"""Tests of the machine: semantics, overlay, execution."""
