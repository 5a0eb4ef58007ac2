package detect

// LeastMeasured is the least share of windows with a false finding for which limits were measured; limits for less are
// extrapolated.
const LeastMeasured = 1.45e-6
