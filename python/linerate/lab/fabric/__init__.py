"""The user-space fabric of a lab: one process that is all its NICs, links and switches.

Open `spec` first: what a fabric is (`FabricSpec`) and how it may change while it runs (`change.ChangeSpec`). The
process is `python -m linerate.lab.fabric`; its protocol is described there. The model itself is Rust (crates/link).
"""
