"""What a pass costs: accelerators, model shapes, bytes and FLOP of a pass, and the ledger that adds them up.

Everything here is *modelled*: numbers from data sheets and shapes, no clock and no model.
"""
