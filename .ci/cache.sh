# Read (with .) by the scripts that install what tests need, before anything else: they leave it in .cache, which is a link to a
# folder that all clones of one machine share (HOPSCOPE_CACHE, by default in the user's folder for caches), so that a second clone
# builds no server again. A folder .cache that is there already stays.
cd "$(dirname "$0")/.."
if [ ! -e .cache ]; then
	mkdir -p "${HOPSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hopscope}"
	ln -s "${HOPSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hopscope}" .cache 2>/dev/null || [ -e .cache ] # another script may have made it
fi
