"""The losses of linear models, and the constants that theorems need.

Features x and labels y are bounded: |x| <= B (``feature_bound``) and |y| <= Y (``label_bound``), or y = +1 or -1 for
hinge and logistic. Below z = <w, x>, r = y - z and q is ``power``.

| loss        | value                                  | exponent of the gradient | its Hoelder constant        |
|-------------|----------------------------------------|--------------------------|-----------------------------|
| hinge       | max(0, 1 - y z)^q                      | q - 1                    | q B^q                       |
| absolute    | |r|^q                                  | q - 1                    | q 2^(2-q) B^q               |
| insensitive | max(0, |r| - tube)^q                   | q - 1                    | q 2^(2-q) B^q               |
| logistic    | ln(1 + e^(-y z))                       | any a in [0, 1]          | B^(1+a) sup_h tanh(h/4)/h^a |
| huber       | r^2/2 for |r| <= k, else k |r| - k^2/2 | any a in [0, 1]          | (2k)^(1-a) B^(1+a)          |
| squares     | r^2/2                                  | 1                        | B^2                         |
| softmax     | ln(sum_j e^(z_j)) - z_y, z = x W       | any a in [0, 1]          | sqrt(2) (2 sqrt(2))^-a B^(1+a) |

A regulariser (lambda/2) |w|^2 makes each of them lambda-strongly convex. It does not depend on the data, so replacing a
record moves the gradient by at most twice the gradient bound of the data part alone. Constants are rounded up.

>>> loss = of("squares", feature_bound=1.0, label_bound=1.0, radius=2.0, regularisation=0.5)
>>> round(loss.lipschitz, 12), round(loss.smoothness, 12), loss.strong_convexity
(3.0, 1.5, 0.5)
"""

from dpcalc.model.loss.base import ArrayDescent, Loss, ScalarDescent
from dpcalc.model.loss.catalogue import LOSSES, PARAMETERS, POWERED, SIGNED, constants, of
from dpcalc.model.loss.scalar import PowerLoss

__all__ = [
    "LOSSES",
    "PARAMETERS",
    "POWERED",
    "SIGNED",
    "ArrayDescent",
    "Loss",
    "PowerLoss",
    "ScalarDescent",
    "constants",
    "of",
]
