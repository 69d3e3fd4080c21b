"""What ``switchyard new-plugin`` writes: a route plugin that installs and passes its tests.

The files are templates below ``plugin/``, shipped as data: ``<<type>>``, ``<<distribution>>``,
``<<module>>`` and ``<<class>>`` in their text stand for the plugin's names.
"""

from switchyard_core.scaffold.names import PluginNames, nearest_name, plugin_names
from switchyard_core.scaffold.writing import plugin_files, write_plugin

__all__ = ["PluginNames", "nearest_name", "plugin_files", "plugin_names", "write_plugin"]
