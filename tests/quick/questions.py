"""The questions of the quick tier: every command, every algorithm and every theorem at least once.

A new command, algorithm or theorem needs a line here; `test_coverage` says which.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import dpcalc
from dpcalc.cards.card import card_text
from dpcalc.recipes.running.shards import sealed
from dpcalc.report import Case, Check, Report, Shard, Status

_PASSED = Check("run", "compare", "gate.yaml", 3, 3, Status.PASSED)
_ONLY_SHARD = sealed(
    Report("check", (Case("pnsgd", {}, (), check=_PASSED),)),
    Shard(1, 1, 1, (0,), (), "", json.dumps({"certify": False, "policy": ""})),
)

FILES = {
    "release.json": card_text(dpcalc.convert(mu=1, delta=1e-5).card()),
    "signed.csv": "1,0,0,0\n-0.5,1,0,0\n0,0.25,1,0\n0.125,0,-0.5,2\n",
    "steps.csv": "step_size,noise_std\n0.5,1.5\n0.25,2\n0.5,1\n0.5,1.5\n",
    "stops.csv": "step_size,noise_std,probability\n0.5,1.5,0.125\n0.25,2,0.25\n0.5,1,0.125\n0.5,1.5,0.5\n",
    "spent.csv": (
        "step_size,noise_std,shift,contraction,spend\n"
        "0.5,1.5,0,1,0\n0.25,2,0.75,1,0.25\n0.5,1,0,0.75,0.25\n0.5,1.5,0.25,1,0.375\n"
    ),
    "clean.csv": "contraction,step_size,noise_std\n0.9,0.1,1\n0.8,0.2,1\n",
    "train.yaml": "{dataset_size: 100, batch_size: 10, epochs: 2, noise_multiplier: 2, max_grad_norm: 1, delta: 1e-5}",
    "run.json": (
        '{"dataset_size": 60000, "batch_size": 256, "drop_last": true, "epochs": 10, "noise_multiplier": 1.1,\n'
        '"poisson_sampling": true}\n'
    ),
    "model.json": (
        '{"schema": "dpcalc.model/1", "dpcalc": "0.1.0", "weights": [1.0], "intercept": 0.0, "columns": ["a"],\n'
        '"target": "y", "positive": "yes", "negative": "no", "low": null, "high": null, "target_range": null,\n'
        '"bound": 1.0, "norm": 2, "loss": {"loss": "logistic"}, "privacy": {}}\n'
    ),
    "rows.csv": "y,a\nyes,0.5\nno,-0.5\nno,0.25\n",
    "gate.yaml": (
        "dpcalc: recipe/1\n"
        "cases:\n"
        "  run:\n"
        "    {command: compare, algorithm: shuffled, records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1,\n"
        "     noise_std: 2, delta: 1e-6, assert: epsilon <= 6}\n"
    ),
    "shard.json": json.dumps(_ONLY_SHARD.to_dict()),
}
"""The files that the questions read."""


class Question(NamedTuple):
    """A question about a run: the algorithm that is answered for, the command line, and the theorems that answer."""

    algorithm: str
    line: str
    theorems: str


QUESTIONS = (
    Question(
        "pnsgd",
        "rdp -n 60 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.5 --sigma 4 -d 1e-5",
        "iteration.pnsgd iteration.pnsgd_rdp iteration.pnsgd_contraction",
    ),
    Question(
        "pnsgd",
        "rdp -n 60 -i 10 -L 1 --smoothness 1 --eta 0.1 --sigma 4 -D 0.5 -d 1e-5",
        "iteration.pnsgd iteration.pnsgd_rdp iteration.pnsgd_domain",
    ),
    Question("pnsgd", "rdp -i 2 -L 0.75 --smoothness 1 -d 1e-5 --schedule steps.csv", "scheduled.pnsgd"),
    Question(
        "pnsgd",
        "hockey-stick -n 30 -i 20 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 1 -e 0.3",
        "contraction.product contraction.paper_product contraction.nonlinear contraction.shift contraction.hybrid",
    ),
    Question(
        "pnsgd",
        "hockey-stick -n 30 -i 20 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 2 -D 1 -e 0.3",
        "contraction.product contraction.paper_product contraction.nonlinear contraction.laplace_shift "
        "contraction.laplace_mixture contraction.hybrid",
    ),
    Question(
        "pnsgd",
        "rdp -n 12 --batch-size 4 --loss logistic --feature-bound 1 --eta 0.1 --sigma 0.5 -d 1e-5",
        "iteration.pnsgd iteration.pnsgd_rdp iteration.linear_model",
    ),
    Question(
        "pnsgd",
        "hockey-stick -i 2 -L 0.75 --smoothness 1 -D 2 -d 1e-5 --schedule steps.csv",
        "stepwise.product stepwise.hybrid",
    ),
    Question(
        "pnsgd",
        "compare --algorithm pnsgd -n 30 -i 10 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "iteration.pnsgd iteration.pnsgd_rdp contraction.shift contraction.hybrid linear.pass linear.curved "
        "linear.forgetting",
    ),
    Question(
        "skip",
        "compare --algorithm skip -n 30 -i 10 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -e 0.1",
        "iteration.skip iteration.skip_rdp linear.skip linear.skip_forgetting",
    ),
    Question(
        "stop",
        "rdp --algorithm stop -n 60 -L 1 --smoothness 1 --eta 0.5 --sigma 4 --order 1.5",
        "iteration.stop_rdp iteration.stop_harmonic iteration.stop_linear iteration.stop_published",
    ),
    Question(
        "stop",
        "compare --algorithm stop -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -D 1 -d 1e-5",
        "iteration.stop iteration.stop_rdp iteration.stop_harmonic iteration.stop_linear "
        "iteration.stop_published contraction.stop_product contraction.stop_nonlinear contraction.stop_hybrid "
        "contraction.stop_published",
    ),
    Question(
        "stop",
        "compare --algorithm stop -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -e 0.1",
        "iteration.stop iteration.stop_rdp iteration.stop_harmonic iteration.stop_linear "
        "iteration.stop_published contraction.stop_hybrid linear.stop linear.stop_forgetting",
    ),
    Question(
        "stop",
        "hockey-stick --algorithm stop -i 2 -L 0.75 --smoothness 1 -D 2 -e 0.5 --schedule stops.csv",
        "stepwise.stop",
    ),
    Question(
        "local",
        "compare --algorithm local -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 8 -d 1e-5",
        "iteration.local iteration.local_rdp iteration.local_classic linear.local",
    ),
    Question(
        "shuffled",
        "shuffle -n 50 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 2 -d 1e-6 --permutation secret",
        "shuffle.product shuffle.nonlinear shuffle.mixture shuffle.hybrid hidden_position.shuffled",
    ),
    Question(
        "shuffled",
        "shuffle -n 12 --batch-size 4 --loss logistic --feature-bound 1 --eta 0.1 --sigma 0.5 -d 1e-5",
        "shuffle.mixture shuffle.hybrid shuffle.linear_model",
    ),
    Question(
        "shuffled",
        "shuffle -n 50 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 2 -D 2 -d 1e-6",
        "shuffle.product shuffle.nonlinear shuffle.laplace_mixture shuffle.hybrid",
    ),
    Question(
        "shuffled",
        "shuffle -n 1e6 -L 10 --smoothness 1 --eta 0.1 -D 1 --c1 1e5 --c2 100 -e 1",
        "shuffle.product shuffle.nonlinear shuffle.mixture shuffle.hybrid shuffle.limit "
        "shuffle.nonlinear_limit hidden_position.shuffled",
    ),
    Question(
        "shuffled",
        "shuffle -L 0.75 --smoothness 1 -D 2 -d 1e-5 --schedule steps.csv",
        "stepwise.shuffled_product stepwise.shuffled_hybrid",
    ),
    Question(
        "shuffled",
        "compare --algorithm shuffled -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffle.mixture shuffle.hybrid hidden_position.shuffled linear.shuffled linear.shuffled_curved",
    ),
    Question(
        "rotation",
        "compare --algorithm rotation -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffle.mixture shuffle.hybrid linear.shuffled linear.shuffled_curved",
    ),
    Question(
        "shuffled-stop",
        "compare --algorithm shuffled-stop -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffle.stop_hybrid linear.shuffled_stop linear.shuffled_stop_curved",
    ),
    Question(
        "shuffled-stop",
        "compare --algorithm shuffled-stop -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -D 1 -d 1e-5",
        "shuffle.stop_product shuffle.stop_hybrid",
    ),
    Question(
        "chain",
        "shifted --steps 10 --shift 0.2 --contraction 0.9 --eta 0.1 --sigma 2 -D 3 -d 1e-6",
        "shifted.gaussian shifted.gaussian_domain",
    ),
    Question(
        "chain",
        "shifted --steps 4 --shift 0.2 --contraction 0.9 --eta 0.1 --laplace-scale 2 -D 3 --order 2",
        "shifted.laplace shifted.laplace_domain",
    ),
    Question(
        "unlearning",
        "unlearn --start-distance 0.02 --contraction 0.99 --eta 0.1 --sigma 0.5 --clean-steps 100 -d 1e-6",
        "unlearning.distance",
    ),
    Question("unlearning", "unlearn --start-distance 0.02 --schedule clean.csv -d 1e-6", "unlearning.schedule"),
    Question(
        "unlearning",
        "unlearn --start minimiser -n 1000 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.1 --sigma 0.5 -e 0.1 "
        "-d 1e-6 --solve clean_steps",
        "unlearning.minimiser",
    ),
    Question(
        "unlearning",
        "unlearn --start run -n 1000 --batch-size 10 --epochs 20 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.1 "
        "--sigma 0.5 --clean-steps 50 -d 1e-6",
        "unlearning.run unlearning.whole_run",
    ),
    Question("chain", "shifted --schedule spent.csv -d 1e-5", "shifted.gaussian shifted.given_spend"),
    Question(
        "online",
        "online -n 1e3 --window 100 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent 1.5 -e 1",
        "online.product online.shift online.hybrid online.limit online.limit_above online.limit_below "
        "online.limit_printed",
    ),
    Question(
        "online",
        "online -n 1e3 --window 100 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent "
        "1.5 -e 1 --noise laplace",
        "online.product online.laplace_shift online.hybrid online.limit online.limit_above online.limit_below "
        "online.limit_printed",
    ),
    Question(
        "cyclic",
        "multi-epoch -n 60 --batch-size 6 --epochs 5 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.1 "
        "--sigma 2 -D 2 -d 1e-5",
        "multi_epoch.cyclic multi_epoch.cyclic_rdp multi_epoch.cyclic_contraction multi_epoch.cyclic_domain "
        "multi_epoch.composition multi_epoch.contraction_published multi_epoch.domain_published "
        "multi_epoch.dynamics_published",
    ),
    Question(
        "cyclic",
        "compare --algorithm cyclic -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "multi_epoch.cyclic multi_epoch.cyclic_rdp multi_epoch.composition multi_epoch.quadratic "
        "linear.passes linear.curved_passes linear.forgetting_passes",
    ),
    Question(
        "cyclic",
        "multi-epoch -n 12 --batch-size 4 --epochs 2 --loss logistic --feature-bound 1 --eta 0.1 --sigma 0.5 -d 1e-5",
        "multi_epoch.cyclic multi_epoch.cyclic_rdp multi_epoch.composition multi_epoch.linear_model "
        "multi_epoch.quadratic",
    ),
    Question(
        "shuffle-once",
        "multi-epoch --algorithm shuffle-once -n 12 --batch-size 4 --epochs 2 --loss logistic --feature-bound 1 "
        "--eta 0.1 --sigma 0.5 -d 1e-5",
        "shuffled_epochs.once shuffled_epochs.once_linear_model",
    ),
    Question(
        "cyclic",
        "multi-epoch -n 8 --epochs 2 -L 1 --smoothness 1 --loss-class smooth --eta 0.1 --sigma 4 -D 2 -d 1e-5",
        "expanding.cyclic expanding.domain multi_epoch.composition",
    ),
    Question(
        "cyclic",
        "multi-epoch -n 8 --epochs 2 -L 1 --eta 0.1 --laplace-scale 4 -D 2 -d 1e-5",
        "expanding.laplace",
    ),
    Question(
        "cyclic",
        "multi-epoch -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 4 -d 1e-5",
        "multi_epoch.laplace expanding.laplace",
    ),
    Question(
        "shuffle-once",
        "multi-epoch --algorithm shuffle-once -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 4 -d 1e-5",
        "shuffled_epochs.once_laplace expanding.laplace",
    ),
    Question(
        "noisy-gd",
        "multi-epoch --algorithm noisy-gd -n 30 --steps 50 -L 1 --smoothness 1 --strong-convexity 0.5 --eta 0.1 "
        "--laplace-scale 4 -d 1e-5",
        "noisy_gd.laplace expanding.laplace",
    ),
    Question(
        "cyclic-released",
        "multi-epoch --release epoch -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -D 0.5 -d 1e-5",
        "released.own_noise released.cyclic released.cyclic_curve",
    ),
    Question(
        "cyclic-released",
        "compare --algorithm cyclic --release epoch -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "released.own_noise released.cyclic linear.passes linear.curved_released linear.forgetting_released",
    ),
    Question(
        "shuffle-once",
        "compare --algorithm shuffle-once -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffled_epochs.once shuffled_epochs.once_secret linear.once linear.once_curved",
    ),
    Question(
        "shuffle-once",
        "compare --algorithm shuffle-once -n 30 --batch-size 10 --epochs 3 -L 1 --smoothness 1 --eta 1 --sigma 0.4 "
        "--permutation secret -d 1e-3",
        "shuffled_epochs.once shuffled_epochs.once_secret linear.once linear.once_curved_secret",
    ),
    Question(
        "shuffled",
        "compare --algorithm shuffled -n 31 --batch-size 10 -L 1 --smoothness 1 --eta 1 --sigma 0.4 "
        "--permutation secret -d 1e-3",
        "shuffle.mixture shuffle.hybrid hidden_position.shuffled linear.shuffled linear.shuffled_curved_secret",
    ),
    Question(
        "shuffled",
        "shuffle -n 30 --batch-size 20 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5 --last-batch balanced",
        "shuffle.mixture shuffle.hybrid hidden_position.shuffled",
    ),
    Question(
        "cyclic",
        "multi-epoch --algorithm cyclic -n 31 --batch-size 10 --epochs 3 -L 1 --smoothness 1 --eta 0.5 --sigma 4 "
        "-d 1e-5 --last-batch front",
        "multi_epoch.composition multi_epoch.cyclic multi_epoch.cyclic_rdp multi_epoch.quadratic",
    ),
    Question(
        "shuffle-once",
        "multi-epoch --algorithm shuffle-once -n 8 --epochs 2 -L 1 --smoothness 1 --loss-class smooth --eta 0.1 "
        "--sigma 4 -D 2 -d 1e-5",
        "expanding.once expanding.composition expanding.domain",
    ),
    Question(
        "rotation-epochs",
        "compare --algorithm rotation-epochs -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffled_epochs.once shuffled_epochs.worst_position linear.once linear.once_curved",
    ),
    Question(
        "rotation-epochs-released",
        "compare --algorithm rotation-epochs --release epoch -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 "
        "--sigma 4 -d 1e-5",
        "released.own_noise released.shuffle_once linear.once linear.once_curved_released",
    ),
    Question(
        "shuffle-once-released",
        "compare --algorithm shuffle-once --release epoch -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 "
        "--sigma 4 -d 1e-5",
        "released.own_noise released.shuffle_once released.shuffle_once_secret linear.once linear.once_curved_released",
    ),
    Question(
        "shuffled-epochs",
        "compare --algorithm shuffled-epochs -n 8 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "shuffled_epochs.fresh shuffled_epochs.fresh_secret linear.epochs linear.epochs_curved",
    ),
    Question(
        "shuffled-epochs",
        "multi-epoch --algorithm shuffled-epochs -n 8 --epochs 2 -L 1 --smoothness 1 --loss-class smooth --eta 0.1 "
        "--sigma 4 -d 1e-5",
        "expanding.fresh expanding.composition",
    ),
    Question(
        "shuffled-epochs-released",
        "compare --algorithm shuffled-epochs --release epoch -n 4 --epochs 2 -L 1 --smoothness 1 --eta 0.5 --sigma 4 "
        "-d 1e-3",
        "released.own_noise released.shuffled_epochs released.shuffled_epochs_point released.shuffled_epochs_rdp "
        "linear.epochs linear.epochs_curved_released",
    ),
    Question(
        "shuffled-epochs-released",
        "compare --algorithm shuffled-epochs --release epoch -n 4 --epochs 2 -L 1 --smoothness 1 --eta 0.5 "
        "--sigma 4 -D 1 -d 1e-5 --permutation secret",
        "released.own_noise released.shuffled_epochs released.shuffled_epochs_point "
        "released.shuffled_epochs_rdp released.shuffled_epochs_secret released.shuffled_epochs_secret_curve",
    ),
    Question(
        "noisy-sgd",
        "compare --algorithm noisy-sgd -n 20 --epochs 3 -L 1 --smoothness 1 --eta 0.5 --sigma 8 -d 1e-3",
        "noisy_sgd.composition noisy_sgd.hidden linear.sampled",
    ),
    Question(
        "noisy-sgd",
        "compare --algorithm noisy-sgd -n 20 --epochs 1 -L 1 --smoothness 1 --strong-convexity 0.1 --eta 0.5 --sigma 8 "
        "-d 1e-3",
        "noisy_sgd.composition noisy_sgd.hidden linear.sampled_curved",
    ),
    Question(
        "noisy-sgd",
        "multi-epoch --algorithm noisy-sgd -n 20 --epochs 3 -L 1 --loss-class convex --eta 0.5 --sigma 8 -D 1 -d 1e-3",
        "noisy_sgd.composition expanding.sampled expanding.domain",
    ),
    Question(
        "noisy-sgd-released",
        "compare --algorithm noisy-sgd --release epoch -n 20 --epochs 3 -L 1 --smoothness 1 --eta 0.5 --sigma "
        "8 -d 1e-3",
        "noisy_sgd.composition linear.sampled",
    ),
    Question(
        "noisy-gd",
        "compare --algorithm noisy-gd -n 20 --steps 9 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -D 1 -d 1e-5",
        "noisy_gd.domain noisy_gd.composition noisy_gd.domain_published",
    ),
    Question(
        "noisy-gd",
        "multi-epoch --algorithm noisy-gd -n 20 --steps 9 -L 1 --smoothness 1 --strong-convexity 0.2 --eta "
        "0.5 --sigma 4 --order 2",
        "noisy_gd.contraction noisy_gd.composition noisy_gd.langevin noisy_gd.langevin_refined "
        "noisy_gd.quadratic noisy_gd.langevin_lower noisy_gd.langevin_published noisy_gd.dynamics_published",
    ),
    Question(
        "noisy-gd-released",
        "compare --algorithm noisy-gd --release epoch -n 20 --steps 9 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
        "noisy_gd.composition linear.descent",
    ),
    Question(
        "repeated",
        "multi-epoch --algorithm repeated --epochs 5 --epoch-epsilon 0.5 -d 1e-5",
        "released.advanced released.optimal released.pure",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --steps 1 --noise-multiplier 1 --sampling poisson --adjacency add-remove "
        "-d 1e-5",
        "sampled.poisson sampled.total_lower",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --steps 1 --noise-multiplier 1 --sampling poisson --max-batch-size 12 -d 1e-5",
        "sampled.truncated",
    ),
    Question(
        "dp-sgd",
        "dp-sgd --sample-rate 0.1 --sampling poisson -d 1e-5 --schedule 'steps=1 noise_multiplier=2;steps=2 "
        "noise_multiplier=1.5'",
        "sampled.scheduled",
    ),
    Question(
        "dp-sgd",
        "compare --algorithm dp-sgd -n 100 --batch-size 10 --steps 1 --noise-multiplier 1 --sampling fixed -d 1e-5",
        "sampled.fixed sampled.total_lower",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 20 --batch-size 2 --steps 1 --noise-multiplier 1 --sampling with-replacement -d 1e-5",
        "sampled.with_replacement sampled.total_lower",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 20 --batch-size 10 --epochs 2 --noise-multiplier 1 --sampling balls-in-bins --adjacency add -d 1e-5",
        "sampled.balls_in_bins sampled.total_lower",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --epochs 2 --noise-multiplier 1 --sampling shuffle -d 1e-5",
        "sampled.shuffle sampled.shuffle_lower sampled.total_lower",
    ),
    Question(
        "dp-sgd",
        "compare --algorithm dp-sgd -n 100 --batch-size 10 --epochs 2 --noise-multiplier 5 --sampling shuffle "
        "--group-size 3 -d 1e-5",
        "sampled.known_places sampled.shuffle sampled.shuffle_lower sampled.total_lower",
    ),
    Question("dp-sgd", "dp-sgd --steps 5 --sampling full -e 1 -d 1e-5", "sampled.full"),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --epochs 5 --noise-multiplier 1 --sampling poisson --adjacency add-remove "
        "--release last -d 1e-5",
        "sampled.poisson sampled.last_iterate_heuristic",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --steps 50 --noise-multiplier 2 --sampling poisson --adjacency remove "
        "--clip 1 --loss logistic --feature-bound 1 --step-size 0.5 -R 0.1 --release last -d 1e-5",
        "sampled.hidden sampled.poisson",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --steps 50 --noise-multiplier 2 --sampling poisson --adjacency remove "
        "--clip 1 --loss logistic --feature-bound 1 --step-size 0.5 --regularisation 0.1 --release last -d 1e-5",
        "sampled.hidden sampled.hidden_lower sampled.poisson",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --batch-size 10 --epochs 5 --noise-multiplier 2 --sampling shuffle "
        "--clip 1 --loss logistic --feature-bound 1 --step-size 0.5 -R 0.1 --release last -d 1e-5",
        "sampled.hidden_shuffle sampled.shuffle",
    ),
    Question(
        "dp-sgd",
        "dp-sgd -n 100 --steps 50 --noise-multiplier 20 --sampling full "
        "--clip 1 --loss logistic --feature-bound 1 --step-size 0.5 -R 0.1 --release last -d 1e-5",
        "sampled.hidden_full",
    ),
    Question(
        "correlated",
        "dp-ftrl --mechanism sqrt --steps 20 --epochs 2 --noise-multiplier 5 --adjacency zero-out -d 1e-5",
        "correlated.gaussian",
    ),
    Question(
        "correlated",
        "dp-ftrl --matrix signed.csv --epochs 2 --noise-multiplier 5 --adjacency zero-out -d 1e-5",
        "correlated.matrix",
    ),
    Question(
        "correlated",
        "dp-ftrl --mechanism banded-sqrt --bands 2 --steps 20 --epochs 2 --noise-multiplier 2 --sampling poisson "
        "--adjacency remove -d 1e-5",
        "correlated.banded_poisson",
    ),
    Question(
        "correlated",
        "compare --algorithm correlated --mechanism banded-sqrt --bands 2 --steps 20 --epochs 2 --noise-multiplier 2 "
        "--sampling balls-in-bins --adjacency add -d 1e-5",
        "correlated.banded_balls",
    ),
    Question(
        "dp-sgd-output",
        "dp-sgd --algorithm dp-sgd-output --loss hinge --feature-bound 1 -n 1000 -R 1 --eta 0.001 --sigma 1 -d 1e-5",
        "dp_sgd.output dp_sgd.output_split dp_sgd.output_published",
    ),
    Question(
        "dp-sgd-gradient",
        "dp-sgd --algorithm dp-sgd-gradient --loss hinge --feature-bound 1 -n 100 -R 1 --sigma 8 -d 1e-3",
        "dp_sgd.gradient dp_sgd.gradient_renyi dp_sgd.gradient_lemma dp_sgd.gradient_published",
    ),
    Question(
        "any",
        "utility --loss logistic --feature-bound 1 -n 1000 --dimension 3 -R 1 --sigma 2 --eta 0.1 --steps 100",
        "utility.average utility.average_published smoothing.kernel descent.last",
    ),
    Question(
        "stop",
        "utility --algorithm stop --loss logistic --feature-bound 1 -n 1000 --dimension 3 -R 1 -e 1 -d 1e-6",
        "utility.stop utility.stop_from_centre utility.stop_classic smoothing.kernel",
    ),
    Question(
        "skip",
        "utility --algorithm skip --loss logistic --feature-bound 1 -n 1000 --dimension 3 -R 1 -e 1 -d 1e-6 "
        "--index 20 --public-records 100",
        "utility.skip utility.skip_from_centre utility.skip_classic utility.person utility.public "
        "utility.public_classic utility.public_published smoothing.kernel smoothing.skip "
        "smoothing.skip_classic smoothing.skip_published",
    ),
    Question(
        "stop",
        "utility --algorithm stop --loss logistic --feature-bound 1 -n 100000 --dimension 20 -R 1 -e 0.5 -d "
        "1e-6 --tasks 3",
        "tasks.stop tasks.harmonic tasks.published smoothing.kernel",
    ),
    Question(
        "noisy-gd",
        "utility --algorithm noisy-gd --loss logistic --feature-bound 1 -n 1000 --dimension 3 -R 1 -e 1 -d "
        "1e-6 --regularisation 0.1",
        "langevin.explicit langevin.iterated langevin.shifted langevin.boundary langevin.least_order "
        "descent.least_noise",
    ),
    Question(
        "dp-sgd-output",
        "utility --algorithm dp-sgd-output --loss hinge --feature-bound 1 -n 100 --dimension 3 -R 1 -e 1 -d "
        "1e-6 --failure-probability 0.1",
        "holder_cost.output_expected holder_cost.output_published holder_cost.output_uniform holder_cost.output_likely",
    ),
    Question(
        "dp-sgd-gradient",
        "utility --algorithm dp-sgd-gradient --loss hinge --feature-bound 1 -n 10 --dimension 1 -R 1 -e 1 -d "
        "1e-6 --failure-probability 0.1",
        "holder_cost.gradient_expected holder_cost.gradient_published holder_cost.gradient_uniform "
        "holder_cost.gradient_likely",
    ),
)

OTHERS = {
    "train --synthetic logistic -n 100 --dimension 2 -R 1 --algorithm stop --eta 0.005 --sigma 0.5 -d 1e-5 -v": (
        "accuracy"
    ),
    "audit --algorithm local -L 1 --eta 0.5 --sigma 1 -d 0.05 --replicas 1e4": "audited:",
    "predict model.json --data rows.csv": "yes,0.62245",
    "evaluate model.json --data rows.csv": "0.666667",
    "model model.json": "in the middle of all ranges",
    "check gate.yaml": "pass",
    "merge shard.json": "1 of 1 cases passed",
    "statement --algorithm stop -n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6": "We run as pnsgd, stopped",
    "ledger --add epsilon=0.1,times=100 -d 1e-6": "4.77457",
    "convert --mu 1 -d 1e-5": "4.37718",
    "risk --mu 1": "0.382925",
    "account run.json -d 1e-5": "epsilon <= 0.919766",
    "find feldman theorem 23": "dpcalc explain iteration.pnsgd",
    "explain iteration.pnsgd": "assumes",
    "bounds --algorithm stop": "iteration.stop",
    "cite iteration.pnsgd": "@",
    "init train.yaml": "max_grad_norm",
    "help sampling": "balls-in-bins",
    "verify release.json --no-certify": "verified: release.json",
    "schema recipe": "recipe/1",
    "completions bash": "complete",
}
"""Command lines that print no table of theorems, and a word of their answer."""
