"""Memory safety and absence of faults, compiled into a program as guards before its accesses."""
