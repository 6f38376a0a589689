"""Viewkeeper shown at work: the example project that `init` writes, and the demo's shop and story.

One duty: to set a scene and tell what happens in it. It must not know how anything is drawn: the
command line gets events. Everything that it starts it ends, also when it is interrupted. Begin with
`story`, which plays in `scenery` with `writers` and `processes`.
"""
