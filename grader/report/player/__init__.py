"""The player: a page that shows, step by step, what one block did. It needs nothing but a browser.

``encoding`` makes compact data of a recording, ``page`` the page around it (``player.js`` and ``player.css``).
"""
