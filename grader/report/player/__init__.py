"""The player: a page that shows the execution of one block step by step. It needs only a browser.

``encoding`` converts a recording to compact data, ``page`` creates the page around it (``player.js``, ``player.css``).
"""
