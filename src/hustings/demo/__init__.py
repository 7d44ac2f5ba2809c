"""The demo: a group elects, loses and regains its leader. Nothing here draws on a terminal."""
