// Package show writes plans for display: a table of text, a picture in SVG, and what differs between two. Each family of plans
// has one file for its table and one for its picture. What is written follows from problem and plan alone, so that it is the
// same each time.
//
// The package makes no plan and checks none. Canvas, colours and the drawing of graphs are in planner/draw.
package show
