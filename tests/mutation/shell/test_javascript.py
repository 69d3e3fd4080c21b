"""JavaScript that writes files or calls tools, by whatever names it has for them."""

from __future__ import annotations

from functools import cache

import tomli

from switchyard_core.conversation import ToolCall
from switchyard_core.mutation import MutationRules, RuleSetModel, compile_rules, core_packs
from tests.support.labelled import mislabelled

#: `PATCH` stands for the text of a patch.
TOOL_EDITS = [
    "const { apply_patch } = tools; await apply_patch(PATCH);",
    "const { apply_patch: ap } = tools; await ap(PATCH);",
    "let { apply_patch } = tools; apply_patch(PATCH)",
    "const { exec_command, apply_patch } = tools; await exec_command({cmd:'ls'}); await apply_patch(PATCH);",  # noqa: E501
    "const { apply_patch: ap, ...rest } = tools; ap(PATCH)",
    "const { apply_patch = null } = tools; apply_patch(PATCH)",
    "const { ...t } = tools; t.apply_patch(PATCH)",
    "const t = tools; await t.apply_patch(PATCH);",
    "const t = globalThis.tools; t.apply_patch(PATCH)",
    "let t; t = tools; await t.apply_patch(PATCH);",
    "const ap = tools.apply_patch; await ap(PATCH);",
    "const ap = tools['apply_patch']; await ap(PATCH);",
    "const ap = tools.apply_patch.bind(tools); await ap(PATCH);",
    "let ap; ap = tools.apply_patch; ap(PATCH)",
    "await tools['apply_patch'](PATCH);",
    "await tools[`apply_patch`](PATCH);",
    "const n = 'apply_patch'; await tools[n](PATCH);",
    "const names = ['apply_patch']; await tools[names[0]](PATCH);",
    "const n = {a:'apply_patch'}; await tools[n.a](PATCH);",
    "await tools['apply' + '_patch'](PATCH);",
    "await tools[['apply','patch'].join('_')](PATCH)",
    "await globalThis.tools.apply_patch(PATCH);",
    "await globalThis['tools'].apply_patch(PATCH);",
    "await tools?.apply_patch(PATCH);",
    "await tools.apply_patch?.(PATCH);",
    "await tools.apply_patch.call(tools, PATCH);",
    "await tools.apply_patch.apply(null, [PATCH]);",
    "await tools.apply_patch({input: PATCH});",
    "await tools.apply_patch(PATCH).then(r => text(r))",
    "const p = PATCH; await tools.apply_patch(p);",
    "const lines = ['*** Begin Patch','*** Add File: a.py','+x','*** End Patch']; await tools.apply_patch(lines.join('\\n'));",  # noqa: E501
    "const run = (c) => tools.exec_command({cmd: c}); await run('sed -i s/a/b/ a.py');",
    "async function sh(c) { return await tools.exec_command({cmd: c}); } await sh('rm a.py');",
    "const sh = async cmd => { const r = await tools.exec_command({cmd}); return r.output }; text(await sh('sed -i s/a/b/ a.py'));",  # noqa: E501
    "for (const f of ['a.py','b.py']) await tools.exec_command({cmd:`sed -i s/a/b/ ${f}`});",
    "await Promise.all(['a.py'].map(f => tools.exec_command({cmd:`rm ${f}`})));",
    "const cmds = ['ls','rm a.py']; for (const c of cmds) await tools.exec_command({cmd: c});",
    "await Promise.all(['ls','rm a.py'].map(cmd => tools.exec_command({cmd})));",
    "['rm a.py'].forEach(c => tools.exec_command({cmd: c}))",
    "const c = ['sed','-i','s/a/b/','a.py'].join(' '); await tools.exec_command({cmd: c});",
    "await tools.exec_command({cmd: ['sed', '-i', 's/a/b/', 'a.py'].join(' ')});",
    "const f='a.py'; await tools.exec_command({cmd: `sed -i s/a/b/ ${f}`});",
    "const f='a.py'; await tools.exec_command({cmd: 'sed -i s/a/b/ ' + f});",
    "let c = 'sed -i s/a/b/'; c += ' a.py'; await tools.exec_command({cmd: c});",
    "const c = 'sed -i'.concat(' s/a/b/ a.py'); await tools.exec_command({cmd: c});",
    "const o = {cmd: 'rm a.py'}; await tools.exec_command(o);",
    "const o = {cmd: 'rm a.py'}; await tools.exec_command({...o, workdir: '.'});",
    "const cmd = `cat > a.py <<'EOF'\nx\nEOF`; await tools.exec_command({cmd});",
    "const cmd = String.raw`rm a.py`; await tools.exec_command({ cmd });",
    "const cmd = true ? 'rm a.py' : 'ls'; await tools.exec_command({ cmd });",
    "const cmd = 'rm a.py' || ''; await tools.exec_command({cmd});",
    "await tools.exec_command({ 'cmd': \"rm a.py\" });",
    "await tools.shell({command: ['sed','-i','s/a/b/','a.py']});",
    "await tools.shell({command: ['bash','-lc','rm a.py']});",
    "await tools.shell_command({command: 'rm a.py'});",
    "try { await tools.apply_patch(PATCH) } catch (e) { text(e) }",
    "if (x) await tools.apply_patch(PATCH);",
    "(async () => { await tools.apply_patch(PATCH) })();",
    "const r = await tools.apply_patch(PATCH); text(r);",
    "// edit\nawait tools.apply_patch(PATCH);",
    "/* ls */ tools.apply_patch(PATCH)",
    "const patch = `*** Begin Patch\n*** Update File: ${'a.py'}\n*** End Patch`; await tools.apply_patch(patch);",  # noqa: E501
    "function go(p){ return tools.apply_patch(p) } await go(PATCH);",
    "const files = {a: 'a.py'}; await tools.exec_command({cmd: `rm ${files.a}`});",
    "const [c] = ['rm a.py']; await tools.exec_command({cmd:c});",
    "const {cmd} = {cmd: 'rm a.py'}; await tools.exec_command({cmd});",
    "const args = ['-i','s/a/b/','a.py']; await tools.exec_command({cmd: `sed ${args.join(' ')}`});",  # noqa: E501
    "await tools.mcp__fs__write_file({path:'a.py',content:'x'});",
    "const {mcp__fs__write_file: w} = tools; await w({path:'a.py',content:'x'})",
    "await tools.write_file({path: 'a.py', content: 'x'});",
    'await tools.exec_command({cmd: "sed -i s/a/b/ a.py".trim()});',
    "await tools.exec_command({cmd: [`rm`, `a.py`].join(` `), yield_time_ms: 1000});",
    "await tools.exec_command({cmd: `sed -i ${[1,2].map(n => n)} a.py`});",
    "await tools.exec_command({cmd: 'python3 - <<\\'PY\\'\\nopen(\"a.py\",\"w\")\\nPY'});",
    "const call = (name, args) => tools[name](args); await call('apply_patch', PATCH);",
    "const h = { run: c => tools.exec_command({cmd:c}) }; await h.run('rm a.py');",
    "const h = { async run(c) { return tools.exec_command({cmd:c}) } }; await h.run('rm a.py');",
    "class X { static run(c) { return tools.exec_command({cmd:c}) } } await X.run('rm a.py');",
    "const cmds=['ls','rm a.py']; await tools.exec_command({cmd: cmds.join(' && ')});",
    "let cmd; cmd = 'rm a.py'; await tools.exec_command({cmd});",
    "const f = process.argv[2]; await tools.exec_command({cmd: 'rm ' + f});",
    "await tools.exec_command({cmd: `rm ${f}`});",
    "const files=['a.py','b.py']; for (const f of files) { const cmd = `sed -i s/a/b/ ${f}`; await tools.exec_command({cmd}); }",  # noqa: E501
    "for (const name of ['apply_patch']) await tools[name](PATCH);",
    "for (const [f,c] of [['a.py','x'],['b.py','y']]) await tools.exec_command({cmd:`echo ${c} > ${f}`});",  # noqa: E501
    "for (const [f,c] of Object.entries({'a.py':'x'})) await tools.exec_command({cmd:`echo ${c} > ${f}`});",  # noqa: E501
    "const steps=[{cmd:'ls'},{cmd:'rm a.py'}]; for (const s of steps) await tools.exec_command(s);",
    "const steps=[{cmd:'ls'},{cmd:'rm a.py'}]; for (const s of steps) await tools.exec_command({cmd: s.cmd});",  # noqa: E501
    "const steps=[{cmd:'ls'},{cmd:'rm a.py'}]; for (const {cmd} of steps) await tools.exec_command({cmd});",  # noqa: E501
    "for (let i=0;i<2;i++) await tools.exec_command({cmd:`echo ${i} >> a.py`});",
    "while (x) { await tools.apply_patch(PATCH) }",
    "async function main() { await tools.apply_patch(PATCH) } await main();",
    "const main = async () => { const {apply_patch} = tools; await apply_patch(PATCH) }; main();",
    "setTimeout(() => tools.apply_patch(PATCH), 0)",
    "tools.exec_command({cmd:'ls'}).then(() => tools.apply_patch(PATCH))",
    "Promise.resolve().then(async () => { await tools.exec_command({cmd:'rm a.py'}) })",
    "const {output} = await tools.exec_command({cmd:'rm a.py'}); text(output)",
    "text((await tools.exec_command({cmd:'rm a.py'})).output)",
    "const r = [await tools.exec_command({cmd:'ls'}), await tools.exec_command({cmd:'rm a.py'})];",
    "await tools.exec_command({cmd: ['bash','-lc','rm a.py']});",
    "await tools.exec_command({cmd: ['sed','-i','s/a/b/','a.py']});",
    "await tools.shell({command: 'sed -i s/a/b/ a.py'});",
    "await tools.local_shell({command:['rm','a.py']});",
    "await tools.exec_command({\n  cmd: \"python3 - <<'PY'\\nfrom pathlib import Path\\nPath('a.py').write_text('x')\\nPY\",\n  workdir: \"/repo\",\n});",  # noqa: E501
    "const py = `\nfrom pathlib import Path\nPath('a.py').write_text('x')\n`;\nawait tools.exec_command({cmd: `python3 - <<'PY'\n${py}\nPY`});",  # noqa: E501
    "const py = \"open('a.py','w')\"; await tools.exec_command({cmd: `python3 -c \"${py}\"`});",
    "const script = ['set -e','sed -i s/a/b/ a.py'].join('\\n'); await tools.exec_command({cmd: script});",  # noqa: E501
    "const script = ['set -e','sed -i s/a/b/ a.py']; await tools.exec_command({cmd: script.join('\\n')});",  # noqa: E501
    "const parts = []; parts.push('sed -i'); parts.push('s/a/b/ a.py'); await tools.exec_command({cmd: parts.join(' ')});",  # noqa: E501
    "const patch = ['*** Begin Patch', '*** Update File: a.py', '@@', '-a', '+b', '*** End Patch'].join('\\n');\nconst result = await tools.apply_patch(patch);\ntext(result);",  # noqa: E501
    "const patch = `*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch\n`;\ntext(await tools.apply_patch(patch));",  # noqa: E501
    "await tools.apply_patch(String.raw`*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch`);",  # noqa: E501
    "const p1 = PATCH; const p2 = PATCH; for (const p of [p1,p2]) await tools.apply_patch(p);",
    "await Promise.all([PATCH].map(p => tools.apply_patch(p)));",
    "await Promise.all([PATCH].map(tools.apply_patch));",
    "[PATCH].forEach(tools.apply_patch);",
    "const run = tools.exec_command; await run({cmd: 'rm a.py'});",
    "const run = async (cmd) => { const r = await tools.exec_command({ cmd, yield_time_ms: 1000 }); return r.output; };\ntext(await run('git status'));\ntext(await run('sed -i s/a/b/ a.py'));",  # noqa: E501
    "const run = async function(cmd, opts = {}) { return tools.exec_command({ cmd, ...opts }); }; await run('rm a.py', {workdir: 'x'});",  # noqa: E501
    "function run(cmd) { return tools.exec_command({ cmd: cmd }); }\nrun('rm a.py');",
    "function run({cmd}) { return tools.exec_command({ cmd }); }\nrun({cmd: 'rm a.py'});",
    "function run(...args) { return tools.exec_command({ cmd: args.join(' ') }); }\nrun('rm','a.py');",  # noqa: E501
    "const edit = f => run(`sed -i s/a/b/ ${f}`); const run = cmd => tools.exec_command({cmd}); await edit('a.py');",  # noqa: E501
    "const dir='src'; await tools.exec_command({cmd:`cd ${dir} && rm a.py`});",
    "await tools.exec_command({cmd:'rm a.py', workdir:'/repo'});",
    "if (!(await tools.exec_command({cmd:'ls'})).ok) { await tools.apply_patch(PATCH); }",
    "switch (x) { case 1: await tools.apply_patch(PATCH); }",
    "try { JSON.parse(x) } finally { await tools.apply_patch(PATCH) }",
    "const { tools: t } = globalThis; await t.apply_patch(PATCH);",
    "const { apply_patch } = globalThis.tools; await apply_patch(PATCH);",
    "const fn = 'apply' + '_patch'; const f = tools[fn]; await f(PATCH);",
    "const f = tools[`apply_${'patch'}`]; await f(PATCH);",
    "await tools.apply_patch(PATCH.replace('x','y'));",
    "await tools.exec_command({cmd: `cat <<'EOF' > a.py\n${content}\nEOF`});",
    "await tools.exec_command({cmd: 'tee a.py <<< ' + JSON.stringify(x)});",
    'await tools.exec_command({cmd: "git apply <<\'E\'\\n" + diff + "\\nE"});',
    "await tools.mcp__filesystem__write_file({path:'a.py',content});",
    "await tools.mcp__fs__edit_file({path:'a.py',edits:[]});",
    "const {mcp__fs__write_file} = tools; mcp__fs__write_file({path:'a.py',content:'x'})",
    "await tools.edit_file({path:'a.py'}); text('x')",
]
TOOL_READS = [
    "const { exec_command } = tools; await exec_command({cmd:'ls'});",
    "const { exec_command: e } = tools; text(await e({cmd:'cat a.py'}));",
    "text(Object.keys(tools).join(','));",
    "await tools.exec_command({cmd:'ls'});",
    "const t = tools; await t.exec_command({cmd:'ls'})",
    "text('tools.apply_patch(x)');",
    "// tools.apply_patch(PATCH)\nawait tools.exec_command({cmd:'ls'});",
    'const q="sed -i"; await tools.exec_command({cmd:`rg ${JSON.stringify(q)} src`});',
    "const rs = await Promise.all(['a','b'].map(f => tools.exec_command({cmd:`cat ${f}`}))); rs.forEach(r => text(r.output));",  # noqa: E501
    "const c = ['git','status'].join(' '); await tools.exec_command({cmd:c});",
    "const run = c => tools.exec_command({cmd: c}); await run('ls -la'); await run('git diff');",
    "const s = 'rm a.py'; text(s);",
    "const cmds=['ls','git status']; for (const c of cmds) await tools.exec_command({cmd:c});",
    "text(tools.apply_patch ? 'y' : 'n');",
    "const { apply_patch } = tools; text(typeof apply_patch);",
    "await tools.update_plan({plan: []});",
    "const names = ['exec_command']; await tools[names[0]]({cmd: 'ls'});",
    "const r = await tools.exec_command({cmd:'cat a.py'}); text(r.output.replace('a','b'));",
    "const other = {apply_patch(x) { return x }}; other.apply_patch(PATCH); await tools.exec_command({cmd:'ls'});",  # noqa: E501
    "await tools.view_image({path:'a.png'});",
    "await tools.exec_command({cmd: `sed -n '1,20p' a.py`});",
    "const f = 'a.py'; await tools.exec_command({cmd: 'grep -n x ' + f});",
    "await tools.web_search({query:'sed -i'});",
    "const o = {cmd:'ls'}; await tools.exec_command(o)",
    "console.log(['sed','-i'].join(' '))",
    "const call = (name, args) => tools[name](args); await call('exec_command', {cmd:'ls'});",
    "const h = { run: c => tools.exec_command({cmd:c}) }; await h.run('ls');",
    "const cmds=['ls','git status']; await tools.exec_command({cmd: cmds.join(' && ')});",
    "await tools.exec_command({cmd: `cat ${f}`});",
    "for (const f of ['a.py','b.py']) { text((await tools.exec_command({cmd:`cat ${f}`})).output) }",  # noqa: E501
    "const run = async (cmd) => { const r = await tools.exec_command({ cmd }); return r.output; };\ntext(await run('git status'));\ntext(await run('rg -n foo src'));",  # noqa: E501
    "const out = await tools.exec_command({cmd:'git diff'}); text(out.output.split('\\n').filter(l => l.startsWith('+')).join('\\n'))",  # noqa: E501
    "text('rm a.py'); await tools.exec_command({cmd:'ls'});",
    "const patch = PATCH; text(patch.length); await tools.exec_command({cmd:'ls'});",
    "const edits = ['rm a.py']; text(edits.join()); await tools.exec_command({cmd:'ls'});",
    "await tools.exec_command({cmd: 'npm test', workdir: '/repo'});",
    "const {exec_command: x} = tools; await Promise.all(['ls','pwd'].map(cmd => x({cmd})));",
    "const r = await tools.exec_command({cmd: \"sed -n '1,200p' a.py\"}); text(r.output)",
    "const files = ['a.py','b.py']; const r = await Promise.all(files.map(f => tools.exec_command({cmd: `sed -n 1,50p ${f}`}))); r.map(x => text(x.output));",  # noqa: E501
    "await tools.update_plan({plan:[{step:'rm a.py',status:'pending'}]});",
    "await tools.exec_command({cmd:'grep -rn \"apply_patch\" .'});",
    "text(ALL_TOOLS.map(t => t.name).join());",
    "const name='exec_command'; await tools[name]({cmd:'ls'});",
    "store('x', 1); text(load('x')); await tools.exec_command({cmd:'ls'})",
    "const x = {apply_patch: p => p}; x.apply_patch(PATCH); tools.exec_command({cmd:'ls'})",
    "function apply_patch(p) { return p } apply_patch(PATCH); tools.exec_command({cmd:'ls'})",
    "await tools.web__run({search_query:[{q:'sed -i'}]});",
    "image(await tools.view_image({path:'a.png'}))",
    "await tools.exec_command({cmd:'python3 - <<\\'PY\\'\\nprint(open(\"a.py\").read())\\nPY'});",
    "const q = 'x > y'; await tools.exec_command({cmd:`rg '${q}' src`});",
]
SCRIPTS = {
    "file_edit": [
        "node -e \"const {writeFileSync: w} = require('fs'); w('a.js','x')\"",
        "node -e \"const {writeFileSync} = require('fs'); writeFileSync('a.js','x')\"",
        "node -e \"const w = require('fs').writeFileSync; w('a.js','x')\"",
        "node -e \"const fs = require('fs'); const w = fs.writeFileSync; w('a.js','x')\"",
        "node -e \"const {promises: fs} = require('fs'); fs.writeFile('a.js','x')\"",
        "node -e \"const fs = require('fs').promises; fs.writeFile('a.js','x')\"",
        "node -e \"const fs = require('fs/promises'); fs.rm('a.js')\"",
        "node -e \"const {rm} = require('fs/promises'); rm('a.js')\"",
        "node -e \"const {rm: del} = require('node:fs/promises'); del('a.js')\"",
        "node -e \"const {unlink} = require('fs'); unlink('a.js', ()=>{})\"",
        "node -e \"require('fs').promises.unlink('a.js')\"",
        "node -e \"import('fs').then(({writeFileSync}) => writeFileSync('a.js','x'))\"",
        "node -e \"import('fs').then(({writeFileSync: w}) => w('a.js','x'))\"",
        "node -e \"const fs = await import('fs'); fs.writeFileSync('a.js','x')\"",
        "node -e \"const {default: fs} = await import('fs'); fs.rmSync('a.js')\"",
        "node -e \"const x = require('fs'); x.rmSync('a.js')\"",
        "node -e \"const x = require('fs'); x.rename('a.js','b.js',()=>{})\"",
        "node -e \"const f = require('fs'); f.copyFile('a','b.js',()=>{})\"",
        "node -e \"require('fs')['writeFileSync']('a.js','x')\"",
        "node -e \"const m = 'writeFileSync'; require('fs')[m]('a.js','x')\"",
        "node -e \"const p = require('path'); require('fs').writeFileSync(p.join('src','a.js'),'x')\"",  # noqa: E501
        "node -e \"const p = ['src','a.js'].join('/'); require('fs').writeFileSync(p,'x')\"",
        "node -e \"for (const f of ['a.js']) require('fs').writeFileSync(f,'x')\"",
        "node -e \"const {execSync} = require('child_process'); execSync('rm a.js')\"",
        "node -e \"const {execSync: e} = require('child_process'); e('rm a.js')\"",
        "node -e \"const cp = require('child_process'); cp.execSync('rm a.js')\"",
        "node -e \"const x = require('child_process'); x.execSync('rm a.js')\"",
        "node -e \"const x = require('child_process'); x.exec('rm a.js')\"",
        "node -e \"require('child_process').spawnSync('rm',['a.js'])\"",
        "node -e \"const {spawn} = require('child_process'); spawn('rm',['a.js'])\"",
        "node -e \"const r = require('child_process').execSync; r('rm a.js')\"",
        "node -e \"require('child_process').execSync(['rm','a.js'].join(' '))\"",
        "node -e \"require('node:child_process').execFileSync('sed',['-i','s/a/b/','a.js'])\"",
        "node -e \"require('child_process').exec('sed -i s/a/b/ a.js', (e)=>{})\"",
        "node -e \"require('child_process').fork('x.js'); require('fs').rmSync('a.js')\"",
        "node -e \"const fs=require('fs'); const fd=fs.openSync('a.js','w'); fs.writeSync(fd,'x')\"",  # noqa: E501
        "node -e \"const fs=require('fs'); fs.open('a.js','a',(e,fd)=>{})\"",
        "node -e \"require('fs').truncateSync('a.js')\"",
        "node -e \"require('fs').appendFile('a.js','x',()=>{})\"",
        "node -e \"require('fs-extra').outputFileSync('a.js','x')\"",
        "node -e \"require('fs-extra').move('a.js','b.js')\"",
        "node -e \"const fse = require('fs-extra'); fse.copy('a','b.js')\"",
        "node -e \"require('shelljs').rm('a.js')\"",
        "node -e \"const sh = require('shelljs'); sh.sed('-i','a','b','a.js')\"",
        "node -e \"require('shelljs').exec('rm a.js')\"",
        "node -e \"require('rimraf').sync('src')\"",
        "node -e \"const {rimraf} = require('rimraf'); rimraf('src')\"",
        "node -e \"eval('require(\\'fs\\').rmSync(\\'a.js\\')')\"",
        "node -e \"(0,require('fs').writeFileSync)('a.js','x')\"",
        "node -e \"Object.assign(globalThis, require('fs')); writeFileSync('a.js','x')\"",
        "node -e \"require('fs').writeFileSync(__dirname + '/a.js','x')\"",
        "node -e \"require('fs').writeFileSync(`${process.cwd()}/a.js`,'x')\"",
        "node -e \"require('util').promisify(require('fs').writeFile)('a.js','x')\"",
        "node -e \"require('fs').createWriteStream('a.js').write('x')\"",
        "node -e \"const fs = require('fs'), p = 'a.js'; fs.writeFileSync(p, fs.readFileSync(p,'utf8').replace('a','b'))\"",  # noqa: E501
        "node -e \"process.binding; require('fs').cpSync('a','b.js')\"",
        "node -e \"const { writeFile } = require('fs').promises; writeFile('a.js','x')\"",
        "node -e \"const { writeFile: wf } = require('fs').promises; wf('a.js','x')\"",
        "node -e \"const { promises: { writeFile: wf } } = require('fs'); wf('a.js','x')\"",
        "node --input-type=module -e \"import fs from 'node:fs'; fs.writeFileSync('a.js','x')\"",
        "node --input-type=module -e \"import {writeFileSync as w} from 'fs'; w('a.js','x')\"",
        "node --input-type=module -e \"import * as fs from 'fs'; fs.rmSync('a.js')\"",
        "node --input-type=module -e \"import * as x from 'node:fs/promises'; await x.rm('a.js')\"",
        "node --input-type=module -e \"import x from 'fs/promises'; await x.unlink('a.js')\"",
        "node --input-type=module -e \"import {rm as del} from 'fs/promises'; await del('a.js')\"",
        "node --input-type=module -e \"import {execSync as e} from 'child_process'; e('rm a.js')\"",
        "node --input-type=module -e \"import x from 'fs'; x.rm('a.js', ()=>{})\"",
        "node --input-type=module -e \"import {execa} from 'execa'; await execa('rm',['a.js'])\"",
        "node --input-type=module -e \"import {promises as p} from 'fs'; await p.rm('a.js')\"",
        "node --input-type=module -e \"import fs, {writeFileSync} from 'fs'; writeFileSync('a.js', 'x')\"",  # noqa: E501
        "node <<'E'\nconst {writeFileSync: w} = require(\"fs\");\nw('a.js','x');\nE",
        "node <<'E'\nconst fs = require('fs');\nconst save = (p, t) => fs.writeFileSync(p, t);\nsave('a.js', 'x');\nE",  # noqa: E501
        "tsx <<'E'\nimport { writeFile } from 'node:fs/promises';\nconst p: string = 'a.ts';\nawait writeFile(p, 'x');\nE",  # noqa: E501
        'deno eval \'const {writeTextFile: w} = Deno; await w("a.ts","x")\'',
        'bun -e \'const {write} = Bun; await write("a.ts","x")\'',
        'bun -e \'const {write: w} = Bun; w("a.ts","x")\'',
        'bun -e \'const b = Bun; await b.write("a.ts","x")\'',
        "deno eval 'const d = Deno; d.removeSync(\"a.ts\")'",
        "deno eval 'Deno.remove(\"a.ts\")'",
        "deno eval 'Deno.create(\"a.ts\")'",
        "deno eval 'Deno.open(\"a.ts\",{write:true})'",
        'deno eval \'Deno.copyFile("a","b.ts")\'',
        "deno eval 'Deno.writeFile(\"a.ts\",x)'",
        "zx <<'E'\nawait $`rm a.ts`\nE",
    ],
    "read_only": [
        "node -e \"const {readFileSync: r} = require('fs'); console.log(r('a.js','utf8'))\"",
        "node -e \"const w = console.log; w('a.js')\"",
        "node -e \"const {log: w} = console; w('a.js','x')\"",
        "node -e \"const {execSync: e} = require('child_process'); e('ls')\"",
        "node -e \"const {join: w} = require('path'); console.log(w('a','b'))\"",
        "node -e \"const fs = require('fs'); console.log(fs.readdirSync('.'))\"",
        "node -e \"const r = require('fs').readFileSync; r('a.js')\"",
        "node -e \"const {promises: fs} = require('fs'); fs.readFile('a.js').then(console.log)\"",
        "node -e \"process.stdout.write('x')\"",
        "node -e \"console.log('require(\\'fs\\').writeFileSync')\"",
        "node -e \"const {writeFileSync: w} = require('fs'); console.log(typeof w)\"",
        "node -e \"const map = new Map(); map.delete('a')\"",
        "node -e \"const q = []; q.remove('a'); q.copy('b')\"",
        "node -e \"require('child_process').execSync('git status')\"",
        "node -e \"require('fs').openSync('a.js','r')\"",
        "node -e \"require('fs').open('a.js',(e,fd)=>{})\"",
        "node -e \"const s = ['rm','a.js'].join(' '); console.log(s)\"",
        "node -e \"const {rename} = require('./x'); console.log(rename)\"",
        "node -e \"const move = (a,b) => a; move('a','b')\"",
        "node -e \"/x/.exec('rm a.js')\"",
        "node -e \"const re = /x/; re.exec('rm a.js')\"",
        "node -e \"res.write('x')\"",
        "node -e \"db.exec('select 1')\"",
        "node -e \"const {unlink} = {unlink: x => x}; unlink('a.js')\"",
        "node <<'E'\n// fs.writeFileSync('a.js','x')\nconsole.log(1)\nE",
        "deno eval 'console.log(await Deno.readTextFile(\"a.ts\"))'",
        "bun -e 'console.log(Bun.version)'",
    ],
}

TEMPORARY = {
    "unknown": [
        "node -e \"require('child_process').execSync(x ? process.argv[2] : 'ls')\"",
    ],
    "scratch_write": [
        "node -e \"require('fs').writeFileSync(x ? process.argv[2] : '/tmp/a.js','x')\"",
        "node -e \"const {join} = require('path'); require('fs').writeFileSync(join(require('os').tmpdir(),'a.js'),'x')\"",  # noqa: E501
        "node -e \"const fs = require('fs'), os = require('os'), path = require('path'); fs.writeFileSync(path.join(os.tmpdir(),'a.js'),'x')\"",  # noqa: E501
        "node -e \"import {tmpdir} from 'node:os'; import {writeFileSync} from 'node:fs'; writeFileSync(tmpdir() + '/a.js','x')\"",  # noqa: E501
        "node -e \"const fs = require('fs'); const d = fs.mkdtempSync(require('os').tmpdir() + '/x-'); fs.writeFileSync(d + '/a.js','x')\"",  # noqa: E501
        "node -e \"const fs = require('fs'); fs.writeFileSync(x ? '/tmp/a.js' : '/tmp/b.js','x')\"",
    ],
    "file_edit": [
        "tsx -e \"import {Project} from 'ts-morph'; const p = new Project(); p.saveSync()\"",
        "node -e \"const fs = require('fs'); fs.writeFileSync(x ? '/tmp/a.js' : 'src/b.js','x')\"",
        "node -e \"const fs = require('fs'); fs.writeFileSync(`${x ? '/tmp' : 'src'}/b.js`,'x')\"",
        "node -e \"const {join} = require('path'); require('fs').writeFileSync(join(x ? 'src' : '/tmp', 'a.js'),'x')\"",  # noqa: E501
    ],
}
#: Scripts that call tools, by the label of all that they may run.
TOOL_LABELS = {
    "file_edit": [
        "await tools.exec_command({cmd: ok ? 'ls' : 'rm a.py'});",
        "const cmd = ok ? 'ls' : 'rm a.py'; await tools.exec_command({cmd});",
        "await tools.exec_command(ok ? {cmd: 'ls'} : {cmd: 'rm a.py'});",
        "const o = ok ? {c: 'ls'} : {c: 'rm a.py'}; await tools.exec_command({cmd: o.c});",
        "await tools.exec_command({cmd: `sed ${ok ? '-n' : '-i'} s/a/b/ a.py`});",
        "await tools.exec_command({cmd: 'sed ' + (ok ? '-n' : '-i') + ' s/a/b/ a.py'});",
        "await tools.exec_command({cmd: ['sed', ok ? '-n' : '-i', 's/a/b/', 'a.py'].join(' ')});",
        "await tools.exec_command({cmd: a ? 'ls' : b ? 'pwd' : 'rm a.py'});",
        "await tools.exec_command({cmd: ok && 'rm a.py'});",
        "await tools.exec_command({cmd: 'ls' || 'rm a.py'});",
        "const sh = (cmd) => tools.exec_command({cmd}); text(await sh(ok ? 'ls' : 'rm a.py'))",
        "const sh = (cmd) => tools.exec_command({cmd}); text(await sh('rm a.py'))",
        "const sh = (c) => tools.exec_command({cmd: 'rm a.py'});",
        "export async function go() { await tools.exec_command({cmd: 'rm a.py'}) }",
        "const f = () => { const g = () => tools.exec_command({cmd: 'rm a.py'}); g() }; f()",
    ],
    "read_only": [
        "await tools.exec_command({cmd: ok ? 'ls' : 'pwd'});",
        "await tools.exec_command({cmd: ok && 'ls'});",
        "const sh = (cmd) => tools.exec_command({cmd}); text(await sh('ls'))",
        "const sh = async (cmd) => { const r = await tools.exec_command({cmd}); return r.output; }; text(await sh('ls')); text(await sh('git log'))",  # noqa: E501
        "function sh(cmd) { return tools.exec_command({cmd}) } text(await sh('ls'))",
        "const h = {sh: (cmd) => tools.exec_command({cmd})}; text(await h.sh('ls'))",
        "let sh; sh = (cmd) => tools.exec_command({cmd}); text(await sh('ls'))",
        "text('done')",
        "text(JSON.stringify({a: 1}, null, 2)); console.log('x')",
    ],
    "unknown": [
        "await tools.exec_command({cmd: ok ? 'ls' : given});",
        "const sh = (cmd) => tools.exec_command({cmd}); text(await sh(given))",
        "const sh = (cmd) => tools.exec_command({cmd}); others.forEach(sh)",
        "const sh = (cmd) => tools.exec_command({cmd});" + "sh('ls');" * 40,
        "text(await other())",
    ],
}

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"


def test_writes_by_whatever_name_have_their_label() -> None:
    assert mislabelled(SCRIPTS) == []


def test_tools_by_whatever_name_are_labelled() -> None:
    assert [code for code in TOOL_EDITS if _label(code) != "file_edit"] == []
    assert [code for code in TOOL_READS if _label(code) == "file_edit"] == []


def test_temporary_directories_and_all_branches_count() -> None:
    assert mislabelled(TEMPORARY) == []


def test_scripts_get_the_label_of_all_that_they_may_run() -> None:
    assert [
        (code, label, got)
        for label, codes in TOOL_LABELS.items()
        for code in codes
        if (got := _label(code)) != label
    ] == []


def test_a_command_that_cannot_be_seen_is_named() -> None:
    code = "const sh = (cmd) => tools.exec_command({cmd}); text(await sh(given))"
    call = ToolCall(id="c", name="exec", kind="custom", source=code)

    assert _rules().label(call).detail == "runs a command that cannot be read whole"


def _label(code: str) -> str:
    """Return the label of a call of Codex's code mode."""
    text = code.replace("PATCH", repr(PATCH))
    call = ToolCall(id="c", name="exec", kind="custom", source=text)
    return _rules().label(call).label


@cache
def _rules() -> MutationRules:
    sets = {pack.name: RuleSetModel.model_validate(tomli.loads(pack.text)) for pack in core_packs()}
    return compile_rules(["coding_agents"], sets)
