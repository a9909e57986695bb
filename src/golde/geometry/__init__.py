"""Component spaces, their orthogonal maps and the signatures that combine them."""

from golde.geometry.contract import Geometry
from golde.geometry.elliptic import Elliptic
from golde.geometry.euclidean import Euclidean
from golde.geometry.grouping import Grouping, gather, present
from golde.geometry.hyperbolic import Hyperbolic
from golde.geometry.signature import GEOMETRIES, Signature, Term

__all__ = [
    "GEOMETRIES",
    "Elliptic",
    "Euclidean",
    "Geometry",
    "Grouping",
    "Hyperbolic",
    "Signature",
    "Term",
    "gather",
    "present",
]
