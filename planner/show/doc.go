// Package show writes plans for display: a table of text, a picture in SVG, and the difference of two plans. Each
// family of plans has one file for its table and one for its picture. Problem and plan determine the output. The package makes
// no plan and checks none.
//
// A picture of a topology has the plan's marks on links and nodes. Traffic over a link is a stroke with an arrow, beside
// the others over it. Networks whose nodes have coordinates are drawn as on a map, and fabrics in layers, core at the top
// and edge at the bottom. Other topologies are drawn by forces (T. Fruchterman, E. Reingold, "Graph drawing by
// force-directed placement", 1991). The start is fixed, so that the same topology always looks the same. Fabrics too large
// for layers are drawn as tables of their pods, in which every link is a cell.
package show
