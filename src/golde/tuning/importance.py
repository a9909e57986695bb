"""Which axes of a search decide whether a trial is among the best."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from golde.tuning.space import Axis
from golde.tuning.trial import as_trial

if TYPE_CHECKING:
    import optuna

FEW = 8
"""Below this many trials nothing can be said about what mattered."""

TOP = 0.25
"""Share of the trials that an axis matters for if its values there differ from those of the others."""


def importance(
    trials: Iterable[optuna.trial.FrozenTrial], axes: Mapping[str, Axis]
) -> dict[str, float]:
    """How much each axis decides whether a trial is among the best, adding up to one.

    PED-ANOVA: how far the values of an axis among the best quarter differ from those of all. Trials
    that were pruned or failed are not among the best, whatever they would have reached. Empty where
    trials are too few to tell.
    """
    import optuna

    study = optuna.create_study(direction="maximize")
    for trial in trials:
        plain = as_trial(trial)
        if plain.counts and trial.params.keys() == axes.keys():
            study.add_trial(
                optuna.create_trial(
                    params=trial.params,
                    distributions=trial.distributions,
                    value=0.0 if plain.state == "failed" else plain.mrr or 0.0,
                )
            )
    if len(study.get_trials(deepcopy=False)) < FEW:
        return {}
    with warnings.catch_warnings():  # also that values of an axis may be few
        warnings.simplefilter("ignore")
        found = optuna.importance.get_param_importances(
            study,
            evaluator=optuna.importance.PedAnovaImportanceEvaluator(target_quantile=TOP),
        )
    return found
