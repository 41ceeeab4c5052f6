"""How people ask, in Chinese, and the one wording of each gold answer.

`QUESTIONS` asks for one field of one drug or disease; `{name}` is the entity. A phrasing belongs to one column only, so
that every question has exactly one right column; NEEDS says which ask for a particular that the text must have.
`LABELS` is the word for the field in the gold answer, `WORDS` are all words for it in questions about several fields or
entities. The other tables are by what is searched or counted: `{word}` is a search word, a disease or a filter value.
"""

from __future__ import annotations

LABELS = {
    "indication": "适应症",
    "adverse_reactions": "不良反应",
    "contraindications": "禁忌",
    "dosage": "用法用量",
    "storage": "贮藏方法",
    "precautions": "注意事项",
    "drug_interactions": "药物相互作用",
    "overview": "概述",
    "clinical_manif": "临床表现",
    "treatment": "治疗方法",
    "cause": "病因",
    "prevention": "预防方法",
    "examination": "检查",
}

QUESTIONS = {
    "indication": (
        "{name}的适应症是什么？",
        "{name}用于治什么病？",
        "{name}主治哪些情况？",
        "请问{name}适用于哪些症状？",
        "{name}的功能主治是什么？",
        "医生开{name}一般是为了治什么？",
        "什么情况下可以吃{name}？",
        "帮我查一下{name}的适应症。",
    ),
    "adverse_reactions": (
        "{name}的不良反应有哪些？",
        "{name}有什么副作用？",
        "吃了{name}会有哪些不舒服？",
        "请问{name}的副作用是什么？",
        "服用{name}可能出现什么不良反应？",
        "{name}副作用大吗，具体是什么？",
        "用{name}以后身体会有什么反应？",
        "帮我查一下{name}的不良反应。",
    ),
    "contraindications": (
        "{name}的禁忌是什么？",
        "哪些人不能吃{name}？",
        "{name}有哪些禁忌症？",
        "请问什么人禁用{name}？",
        "{name}对哪些人是禁用的？",
        "哪些人绝对不可以用{name}？",
        "{name}的禁忌人群有哪些？",
        "帮我查一下{name}的禁忌。",
    ),
    "dosage": (
        "{name}的用法用量是什么？",
        "{name}一次吃多少，一天几次？",
        "{name}应该怎么吃？",
        "请问{name}怎么服用？",
        "{name}每天要吃几次？",
        "{name}的服用剂量是多少？",
        "{name}每次的用量是多少？",
        "帮我查一下{name}的用法用量。",
    ),
    "storage": (
        "{name}怎么保存？",
        "{name}的贮藏方法是什么？",
        "{name}应该放在哪里存放？",
        "请问{name}的保存条件是什么？",
        "{name}在什么温度下保存？",
        "家里的{name}要如何储存？",
        "存放{name}有什么要求？",
        "帮我查一下{name}的贮藏方法。",
    ),
    "precautions": (
        "{name}的注意事项有哪些？",
        "吃{name}要注意什么？",
        "哪些人要慎用{name}？",
        "请问使用{name}时要注意哪些事？",
        "{name}服用期间要避免什么？",
        "用{name}之前需要留意什么？",
        "服用{name}有什么要小心的？",
        "帮我查一下{name}的注意事项。",
    ),
    "drug_interactions": (
        "{name}的药物相互作用是什么？",
        "{name}不能和什么一起吃？",
        "{name}和什么同服会有问题？",
        "请问{name}与哪些东西有相互作用？",
        "吃{name}时同服什么会影响药效？",
        "{name}和什么要隔开几小时吃？",
        "{name}与什么合用有影响？",
        "帮我查一下{name}的药物相互作用。",
    ),
    "overview": (
        "{name}是什么病？",
        "{name}的概述是什么？",
        "请简单介绍一下{name}。",
        "请问{name}是一种什么样的疾病？",
        "{name}多见于什么人？",
        "能说说{name}是怎么回事吗？",
        "{name}属于哪种疾病？",
        "帮我查一下{name}的概述。",
    ),
    "clinical_manif": (
        "{name}的临床表现是什么？",
        "{name}有哪些症状？",
        "得了{name}会有什么表现？",
        "请问{name}的症状是什么？",
        "{name}发作时有什么感觉？",
        "患{name}的人会哪里不舒服？",
        "{name}什么时候会加重？",
        "帮我查一下{name}的临床表现。",
    ),
    "treatment": (
        "{name}怎么治疗？",
        "{name}的治疗方法是什么？",
        "得了{name}该怎么治？",
        "请问{name}如何治疗？",
        "{name}一般用什么办法治？",
        "治{name}要多少天，怎么配合？",
        "{name}有什么治疗方案？",
        "帮我查一下{name}的治疗方法。",
    ),
    "cause": (
        "{name}的病因是什么？",
        "{name}是什么引起的？",
        "为什么会得{name}？",
        "请问{name}的发病原因是什么？",
        "{name}是怎么得上的？",
        "哪些因素会导致{name}？",
        "{name}的起因是什么？",
        "帮我查一下{name}的病因。",
    ),
    "prevention": (
        "{name}怎么预防？",
        "{name}的预防方法是什么？",
        "怎样才能不得{name}？",
        "请问如何预防{name}？",
        "预防{name}平时要做什么？",
        "{name}有什么预防措施？",
        "想避免{name}应该怎么做？",
        "帮我查一下{name}的预防方法。",
    ),
    "examination": (
        "{name}要做什么检查？",
        "{name}的检查项目有哪些？",
        "怀疑{name}应该查什么？",
        "请问{name}需要做哪些检查？",
        "{name}的检查结果是什么样？",
        "去医院看{name}要查哪些项目？",
        "{name}还需加做什么检查？",
        "帮我查一下{name}的检查。",
    ),
}

# Phrasings that ask for a particular, and the words of which a text that has it has one.
NEEDS = {
    "{name}一次吃多少，一天几次？": ("次",),
    "{name}每天要吃几次？": ("次",),
    "{name}在什么温度下保存？": ("℃", "°", "度", "冷藏", "常温", "室温"),
    "哪些人要慎用{name}？": ("慎用",),
    "{name}服用期间要避免什么？": ("避免", "不宜", "忌"),
    "{name}和什么要隔开几小时吃？": ("小时",),
    "吃{name}时同服什么会影响药效？": ("药效", "吸收", "疗效", "作用"),
    "{name}多见于什么人？": ("多见于", "好发于", "常见于"),
    "{name}什么时候会加重？": ("加重",),
    "治{name}要多少天，怎么配合？": ("天",),
    "{name}的检查结果是什么样？": ("见", "示", "高", "低", "异常", "阳性"),
    "{name}还需加做什么检查？": ("加做",),
}

WORDS = {
    "indication": ("适应症", "主治"),
    "adverse_reactions": ("不良反应", "副作用"),
    "contraindications": ("禁忌", "禁用人群"),
    "dosage": ("用法用量", "吃法"),
    "storage": ("贮藏方法", "保存条件"),
    "precautions": ("注意事项", "慎用人群"),
    "drug_interactions": ("药物相互作用", "相互作用"),
    "overview": ("概述", "简介"),
    "clinical_manif": ("临床表现", "症状"),
    "treatment": ("治疗方法", "治法"),
    "cause": ("病因", "起因"),
    "prevention": ("预防方法", "预防措施"),
    "examination": ("检查", "检查项目"),
}

# Fields are joined by 、 and 和 into {fields}.
MULTI = (
    "{name}的{fields}分别是什么？",
    "请问{name}的{fields}各是什么？",
    "帮我查一下{name}的{fields}。",
    "我想同时了解{name}的{fields}。",
    "{name}的{fields}都告诉我。",
    "能讲讲{name}的{fields}吗？",
)

COMPARE = (
    "{first}和{second}的{field}有什么不同？",
    "{first}与{second}的{field}分别是什么？",
    "请比较{first}和{second}的{field}。",
    "{first}和{second}，两者的{field}有何区别？",
    "帮我对比{first}跟{second}的{field}。",
    "同样看{field}，{first}和{second}差在哪里？",
)

SEARCH = {
    "indication": (
        "哪些药可以治{word}？",
        "有什么药能用于{word}？",
        "{word}可以用什么药？",
        "请问治疗{word}的药有哪些？",
        "出现{word}该找什么药？",
        "帮我查一下用于{word}的药。",
    ),
    "component": (
        "哪些药含有{word}？",
        "成分里有{word}的药是什么？",
        "请问什么药的成份是{word}？",
        "含{word}的药有哪些？",
        "帮我查一下含{word}的药。",
        "哪种药是用{word}做的？",
    ),
}

TO_DRUG = (
    "得了{word}可以吃什么药？",
    "{word}用什么药治？",
    "哪些药的适应症是{word}？",
    "请问{word}有对症的药吗？",
    "确诊{word}，有哪些药可选？",
    "帮我查一下治{word}的药。",
)

COUNT = {
    "company_name": (
        "{word}生产几种药？",
        "{word}的药一共有多少种？",
        "请问{word}有几种药品？",
        "数一下{word}出的药有几种。",
    ),
    "indication": (
        "能治{word}的药有几种？",
        "用于{word}的药一共多少种？",
        "请问治疗{word}的药有多少种？",
        "数一下治{word}的药有几种。",
    ),
    "complication": (
        "会并发{word}的病有几种？",
        "有多少种病可能引起{word}？",
        "请问并发症有{word}的病有多少种？",
        "数一下能并发{word}的病有几种。",
    ),
}

ANSWERS = {
    "field": "{name}的{label}：{text}",
    "search": "{word}相关的药品有：{names}。",
    "count": "共有{count}种。",
    "unanswerable": "数据库中没有找到{name}的{label}。",
}
