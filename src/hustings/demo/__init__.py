"""The demo's story: a simulated group elects, loses and regains its leader. No terminal in here."""
