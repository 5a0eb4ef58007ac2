graph [
  DateObtained "20/10/10"
  GeoLocation "Bulgaria"
  GeoExtent "Country"
  Network "BREN"
  Provenance "Primary"
  Note "Names from http://www.bren.bg/index.php?option=com_content&view=article&id=11&Itemid=15&lang=en"
  Source "http://www.bren.bg/images/stories/bren_2010_english.png"
  Version "1.0"
  Type "REN"
  DateType "Dynamic"
  Backbone 1
  Commercial 0
  label "Bren"
  ToolsetVersion "0.3.34dev-20120328"
  Customer 1
  IX 0
  SourceGitVersion "e278b1b"
  DateModifier "="
  DateMonth "10"
  LastAccess "20/10/10"
  Access 0
  Layer "Layer 1"
  Creator "Topology Zoo Toolset"
  Developed 0
  Transit 0
  NetworkDate "2010_10"
  DateYear "2010"
  LastProcessed "2011_09_01"
  Testbed 0
  node [
    id 0
    label "Technical Uni"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 1
    label "None"
    hyperedge 1
    Internal 1
  ]
  node [
    id 2
    label "Todos Kableshkov Uni"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 3
    label "IPP-BAS"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 4
    label "Telecom. and Post"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 5
    label "South-West Uni"
    Country "Bulgaria"
    Longitude 23.1
    Internal 1
    Latitude 42.01667
    type "End Customer"
  ]
  node [
    id 6
    label "Civil Engineering"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 7
    label "Higher Attestation Commission"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 8
    label "Academy of Sciences"
    Internal 0
  ]
  node [
    id 9
    label "NMU"
    Internal 1
    type "End Customer"
  ]
  node [
    id 10
    label "Vasil Levski Uni"
    Country "Bulgaria"
    Longitude 26.92286
    Internal 1
    Latitude 43.27064
    type "Backbone Switch"
  ]
  node [
    id 11
    label "Uni of Economics"
    Country "Bulgaria"
    Longitude 27.91667
    Internal 1
    Latitude 43.21667
    type "Backbone Switch"
  ]
  node [
    id 12
    label "Varna Tech Uni"
    Country "Bulgaria"
    Longitude 27.91667
    Internal 1
    Latitude 43.21667
    type "End Customer"
  ]
  node [
    id 13
    label "Naval Academy"
    Country "Bulgaria"
    Longitude 27.91667
    Internal 1
    Latitude 43.21667
    type "End Customer"
  ]
  node [
    id 14
    label "None"
    hyperedge 1
    Internal 1
  ]
  node [
    id 15
    label "None"
    hyperedge 1
    Internal 1
  ]
  node [
    id 16
    label "Shumen University"
    Country "Bulgaria"
    Longitude 26.92286
    Internal 1
    Latitude 43.27064
    type "End Customer"
  ]
  node [
    id 17
    label "Ruse Uni."
    Country "Bulgaria"
    Longitude 25.97083
    Internal 1
    Latitude 43.85639
    type "Backbone Switch"
  ]
  node [
    id 18
    label "Academy of Economics"
    Country "Bulgaria"
    Longitude 25.35389
    Internal 1
    Latitude 43.62306
    type "End Customer"
  ]
  node [
    id 19
    label "Technical Uni."
    Country "Bulgaria"
    Longitude 24.75
    Internal 1
    Latitude 42.15
    type "End Customer"
  ]
  node [
    id 20
    label "Agriculture"
    Country "Bulgaria"
    Longitude 24.75
    Internal 1
    Latitude 42.15
    type "End Customer"
  ]
  node [
    id 21
    label "Plovdiv Uni"
    Country "Bulgaria"
    Longitude 24.75
    Internal 1
    Latitude 42.15
    type "Backbone Switch"
  ]
  node [
    id 22
    label "Pleven University"
    Country "Bulgaria"
    Longitude 24.61667
    Internal 1
    Latitude 43.41667
    type "Backbone Switch"
  ]
  node [
    id 23
    label "None"
    hyperedge 1
    Internal 1
  ]
  node [
    id 24
    label "Veliko Uni"
    Country "Bulgaria"
    Longitude 25.62904
    Internal 1
    Latitude 43.08124
    type "End Customer"
  ]
  node [
    id 25
    label "Military Uni"
    Country "Bulgaria"
    Longitude 25.62904
    Internal 1
    Latitude 43.08124
    type "Backbone Switch"
  ]
  node [
    id 26
    label "Gabrovo Uni"
    Country "Bulgaria"
    Longitude 25.33417
    Internal 1
    Latitude 42.87472
    type "Backbone Switch"
  ]
  node [
    id 27
    label "Sofia University"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 28
    label "Economy Uni."
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 29
    label "GEANT"
    Internal 0
  ]
  node [
    id 30
    label "BG Internet"
    Internal 0
  ]
  node [
    id 31
    label "Medical Uni. Pharmacy"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 32
    label "Medical Uni Public Health"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 33
    label "Min. Education"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  node [
    id 34
    label "Sofia Uni."
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 35
    label "Medical Uni Sofia"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "Backbone Switch"
  ]
  node [
    id 36
    label "Medical college of Sofia"
    Country "Bulgaria"
    Longitude 23.32415
    Internal 1
    Latitude 42.69751
    type "End Customer"
  ]
  edge [
    source 0
    target 3
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 0
    target 28
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 1
    target 3
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 1
    target 4
    LinkSpeed "100"
    LinkLabel "100 Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 1
    target 6
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 1
    target 7
    LinkSpeed "100"
    LinkLabel "100Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 2
    target 34
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 2
    target 3
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 3
    target 8
    LinkType "Ethernet"
    LinkSpeed "1"
    LinkLabel "1Gb/s Ethernet"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 3
    target 14
    LinkSpeed "100"
    LinkLabel "100 Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 3
    target 21
    LinkSpeed "1"
    LinkLabel "1Gb/s "
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 3
    target 22
    LinkType "Ethernet"
    LinkSpeed "1"
    LinkLabel "1Gb/s Ethernet"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 3
    target 29
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 3
    target 30
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 5
    target 14
    LinkSpeed "100"
    LinkLabel "100 Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 9
    target 15
    LinkSpeed "100"
    LinkLabel "100Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 10
    target 16
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 10
    target 17
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 10
    target 11
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 11
    target 12
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 11
    target 13
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 11
    target 21
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 15
    target 22
    LinkSpeed "100"
    LinkLabel "100Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 17
    target 25
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 18
    target 23
    LinkSpeed "100"
    LinkLabel "100Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 19
    target 21
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 20
    target 21
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 22
    target 25
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 23
    target 25
    LinkSpeed "100"
    LinkLabel "100Mb/s"
    LinkSpeedUnits "M"
    LinkSpeedRaw 100000000.0
  ]
  edge [
    source 24
    target 25
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 25
    target 26
    LinkSpeed "1"
    LinkLabel "1Gb/s"
    LinkSpeedUnits "G"
    LinkSpeedRaw 1000000000.0
  ]
  edge [
    source 27
    target 35
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 27
    target 28
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 31
    target 34
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 32
    target 34
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 33
    target 34
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 34
    target 35
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
  edge [
    source 35
    target 36
    LinkType "Ethernet"
    LinkLabel "Ethernet"
  ]
]
