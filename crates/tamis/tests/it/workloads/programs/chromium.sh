# Chromium without a window and with its own sandbox, as an ordinary user: a page with a script.
printf '<p id=a></p><script>a.textContent = 6 * 7</script>' >page.html
chmod -R a+rwX .
export HOME=$PWD
setpriv --reuid 65534 --regid 65534 --clear-groups \
    chromium --headless --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/user" --dump-dom "file://$PWD/page.html" 2>/dev/null
echo $?
