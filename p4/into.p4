// SPDX-License-Identifier: Apache-2.0
// INTO (Marques et al., J. Internet Services and Applications 10:12, 2019): intmd.p4, whose interfaces add their values to
// packets of the flows that are assigned to them, and to no others. The first assigned interface puts INT in, the last one
// takes it out and reports it. Packets that carry INT of another kind are treated as in intmd.p4.
//
// Such INT has a domain of its own, which switches without an assignment forward unchanged. A port towards hosts takes it
// out, too, if no interface before has done so.
#define WITH_ASSIGNED 1
#include "intmd.p4"
