"""The course as a static site: ``make book`` writes it to ``build/book/html``. It needs the extra ``book`` (Sphinx).

``lessons``, ``exercises``, ``files``, ``references`` and ``front`` each write one kind of page as Sphinx source.
``links`` connects them, ``site`` runs Sphinx, and ``offline`` checks that no page loads anything from other servers.
"""
