"""Our machines and the shipped Qwen Code, side by side on the same scenarios.

One script a scenario (`scenarios`, in the words of `script`) is played twice: to the pure machines
(`ours`) and to the real `qwen --acp` (`qwen`), which is started with an empty environment and home on
a scripted model on loopback. Both have the same bridge in front of them (`bridge`), so that what differs
is the agent. What was seen is reduced to the same facts (`seen`) and compared; `page` writes
docs/comparison.md. `python -m comparison` does it all.
"""
