// SPDX-License-Identifier: Apache-2.0
// RFT (Sun et al., "RFT: Toward Highly Reliable Flow Data Transmission in Network Measurement"): into.p4, whose reports leave
// over assigned paths, at assigned rates. A report comes back into the switch that made it, and is sent on by address and tag
// there and at every switch on its way.
#define WITH_DELIVERY 1
#include "into.p4"
