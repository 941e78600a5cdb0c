"""The configuration that a finished study recommends: a table with its evidence, and texts that put it in force.

Open this file first. `configuration` takes from a study which settings to put in force, and what is left out and why.
`table` shows it as publications print it. Each other module writes one form: `linux` (a shell script with undo),
`powershell`, `ansible`, `sysctl`, `udev`, `multipath`, `switch`. What a setting is called in a form is written where
the setting is: with its knob (`linerate.host.linux`, `linerate.host.windows`), with the reader of multipath.conf, with
the rules of advice on switches. `form` has what all forms share; `forms` is the list. Nothing is changed from here.
"""

from linerate.recommend.configuration import Configuration, RecommendedSetting, recommended_configuration
from linerate.recommend.forms import FORMS, configuration_text
from linerate.recommend.table import table_lines

__all__ = [
    "FORMS",
    "Configuration",
    "RecommendedSetting",
    "configuration_text",
    "recommended_configuration",
    "table_lines",
]
