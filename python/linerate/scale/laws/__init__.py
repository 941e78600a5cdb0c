"""Laws of scaling: what rate a load has that was not measured.

`choice.py` fits both laws and chooses; open it first. `universal.py` is the Universal Scalability Law, `network.py`
mean-value analysis with the `demands.py` of the runs. `jackknife.py` says how far a law misses loads that it has not
seen, `words.py` tells it.
"""

from linerate.scale.laws.choice import Laws, Prediction, laws_of
from linerate.scale.laws.demands import demands_s
from linerate.scale.laws.jackknife import Law

__all__ = ["Law", "Laws", "Prediction", "demands_s", "laws_of"]
