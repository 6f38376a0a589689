"""What users would pick instead, side by side with us: the same changes, the same machine, the same run.

Every system is one small module with ``run(task) -> measurement``. It runs as a process of its own, in an
environment of its own, reads the workload from files and answers with a file of JSON. The modules of
systems that live in other environments may import nothing of ours but `peers.task`.
"""
